import FuzzSurfaces
import Glibc
import TestChance

/// Feeds every parser of external input with seeded random inputs, and measures each call:
///
///     LarderFuzz COUNT [SEED [FIRST]]
///
/// Exits 1 if a result violates its invariant or an input takes over 50 ms of thread time (10 s in a debug build).
/// After a trap, the last printed number is the start of the batch with the failing input.
struct Fuzz {
    #if DEBUG
        static let mostSeconds = 10.0
    #else
        static let mostSeconds = 0.05
    #endif
    static let step: UInt64 = 10_000
    let count: UInt64
    let seed: UInt64
    let first: UInt64
    var slowest: [String: (seconds: Double, number: UInt64)] = [:]
    var faults = 0

    mutating func run() {
        for number in first..<first + count {
            if (number - first) % Self.step == 0 {
                print("from \(number)")
                fflush(nil)
            }
            let surface = Surface.all[Int(number % UInt64(Surface.all.count))]
            let bytes = Mutation.input(number, seed: seed, from: surface.seeds)
            let began = Self.threadSeconds()
            let holds = surface.take(bytes)
            var seconds = Self.threadSeconds() - began
            // Thread time includes interrupts: only an input that is slow twice is slow.
            if seconds > Self.mostSeconds { seconds = min(seconds, again(surface, bytes)) }
            if seconds > slowest[surface.name]?.seconds ?? -1 { slowest[surface.name] = (seconds, number) }
            guard !holds || seconds > Self.mostSeconds else { continue }
            faults += 1
            print("\(surface.name), input \(number), \(bytes.count) bytes: \(holds ? "\(seconds) s" : "wrong")")
        }
        for (name, slow) in slowest.sorted(by: { $0.key < $1.key }) {
            print("\(name): slowest \(slow.seconds * 1000) ms, input \(slow.number)")
        }
        print("inputs \(count), faults \(faults)")
    }

    private func again(_ surface: Surface, _ bytes: [UInt8]) -> Double {
        let began = Self.threadSeconds()
        _ = surface.take(bytes)
        return Self.threadSeconds() - began
    }

    private static func threadSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

let numbers = CommandLine.arguments.dropFirst().compactMap { UInt64($0) }
guard numbers.count == CommandLine.arguments.count - 1, (1...3).contains(numbers.count) else {
    print("usage: LarderFuzz COUNT [SEED [FIRST]]")
    exit(2)
}
var fuzz = Fuzz(count: numbers[0], seed: numbers.count > 1 ? numbers[1] : 1, first: numbers.count > 2 ? numbers[2] : 0)
fuzz.run()
exit(fuzz.faults == 0 ? 0 : 1)
