import Foundation

/// A test that goes through very many cases: a few of them among the others, all where `FAULTS` in the environment is its
/// name. `SEED` decides what chance does, `START` where it begins, `ROUNDS` how many cases it has at most.
package struct Sweep: Sendable {
    package let isWhole: Bool
    package let seed: UInt64
    package let start: Int
    private let rounds: Int?

    package init(_ name: String) {
        let environment = ProcessInfo.processInfo.environment
        isWhole = environment["FAULTS"] == name
        seed = environment["SEED"].flatMap { UInt64($0) } ?? 1
        start = isWhole ? environment["START"].flatMap { Int($0) } ?? 0 : 0
        rounds = environment["ROUNDS"].flatMap { Int($0) }
    }

    /// From one case to the next, where there are `count` of them; among the other tests about `brief` are tried.
    package func step(of count: Int, brief: Int) -> Int {
        max(1, count / max(1, isWhole ? rounds ?? count : brief))
    }

    /// Tells `scripts/faults.py` that all before `number` is done, and what has failed up to there.
    package func reached(_ number: Int, failures: [String]) {
        guard isWhole, number.isMultiple(of: 10) else { return }
        say(failures)
        say("START=\(number)")
    }

    /// Tells it what came out.
    package func ended(rounds: Int, wrong: Int, failures: [String], _ what: String) {
        guard isWhole else { return }
        say(failures)
        say("\(rounds) \(wrong) \(what)")
    }

    private func say(_ failures: [String]) {
        for failure in failures { say("FAILED \(failure.replacing("\n", with: " "))") }
    }

    private func say(_ line: String) {
        FileHandle.standardOutput.write(Data("SWEEP \(line)\n".utf8))
    }
}
