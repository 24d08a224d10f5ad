import CacheCore
import CacheStore
import CacheTestKit
import Foundation
import Testing

@testable import CacheEngine

/// Fails the n-th call on the disk while a cache fills, serves, evicts, purges and starts again. Bytes that are served are right,
/// or the read fails; the service answers afterwards, and so does the next one; nothing on disk is wrong.
///
/// A few n are tried among the other tests, each one by `make faults ONLY=calls`.
@Suite(.timeLimit(.minutes(120))) struct DiskCallFaultTests {
    /// What becomes of the call.
    private enum Fault: Sendable {
        case failure(Int32)
        /// Of those that read or write: one byte is read or written of all that were asked for.
        case short
    }

    private static let faults: [Fault] =
        [ENOSPC, EIO, EDQUOT, EFBIG, EMFILE, ENFILE, EINTR].map { .failure($0) } + [.short]
    private static let size = 900_000
    private let sweep = Sweep("calls")

    @Test func whicheverCallFailsNothingWrongIsServed() async throws {
        let calls = try await Self.life(nil).calls
        #expect(calls > 60)
        let step = sweep.step(of: calls, brief: 6)
        var (rounds, failures): (Int, [String]) = (0, [])
        for first in stride(from: max(sweep.start, 1), through: calls, by: step) {
            sweep.reached(first, failures: failures)
            failures += try await Self.lives(from: first, step)
            rounds += Self.faults.count
        }
        let wrong = failures.filter { $0.contains(Self.wrongBytes) }.count
        sweep.ended(rounds: rounds, wrong: wrong, failures: failures, "calls on the disk failed, or were short")
        #expect(failures.isEmpty, "\(failures.prefix(10).joined(separator: "\n"))")
    }

    /// One life for each fault, side by side: most of their time they wait.
    private static func lives(from first: Int, _ step: Int) async throws -> [String] {
        try await withThrowingTaskGroup(of: [String].self) { group in
            for (number, fault) in faults.enumerated() {
                // Where not all are tried, others for each fault.
                let count = first + number * step / faults.count
                group.addTask {
                    try await life((fault, count: count)).failures.map { "call \(count), \(fault): \($0)" }
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    private static let wrongBytes = "wrong bytes"

    /// One life of a cache, on a disk of which one call fails, and the next one's look at what it left; how many calls there
    /// were.
    private static func life(_ fault: (Fault, count: Int)?) async throws -> (calls: Int, failures: [String]) {
        let bench = try Bench(LoopbackAsset(size: Int64(size)))
        defer { bench.upstream.stop() }
        try await bench.cache().run { _ in }
        let disk = FaultyDisk()
        switch fault {
        case (.failure(let number), let count)?: disk.fail(after: count, with: number)
        case (.short, let count)?: disk.shorten(after: count)
        case nil: break
        }
        let failures = await use(bench, disk)
        return (disk.events.count, failures + (await look(bench)))
    }

    private static func use(_ bench: Bench, _ disk: FaultyDisk) async -> [String] {
        // A start may fail, and says why.
        guard let test = try? bench.cache(disk: disk) else { return [] }
        let failures = try? await test.run { cache -> [String] in
            var isRight = true
            for range in [0..<300_000, 200_000..<900_000, 0..<900_000] as [ByteRange] {
                isRight = await reads(bench, cache, range) && isRight
            }
            // Each of these may be what fails.
            _ = try? await cache.evict(.free(bytes: 300_000), isDryRun: false)
            isRight = await reads(bench, cache, 100_000..<800_000) && isRight
            if let id = try? await bench.id(in: cache) { try? await cache.deleteAsset(id, isSoft: false) }
            isRight = await reads(bench, cache, 0..<600_000) && isRight
            // The fault has gone by: the service is well again.
            disk.heal()
            let isWell = try await eventually(within: .seconds(30)) {
                (try? await cache.body(of: "a.mp4", 0..<900_000).bytes.isSame(as: bench.asset.bytes(0..<900_000)))
                    ?? false
            }
            return (isRight ? [] : [wrongBytes]) + (isWell ? [] : ["it did not become well"])
        }
        return failures ?? []
    }

    /// Whether what was read, if it was, is right.
    private static func reads(_ bench: Bench, _ cache: AssetCache, _ range: ByteRange) async -> Bool {
        guard let read = try? await cache.body(of: "a.mp4", range) else { return true }
        return read.bytes.isSame(as: bench.asset.bytes(range))
    }

    /// The next life, on a disk that is well; then a look at all of it.
    private static func look(_ bench: Bench) async -> [String] {
        do {
            return try await bench.cache { $0.verification = .always }.run { cache -> [String] in
                let read = try await cache.body(of: "a.mp4")
                let isRight = read.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size))
                var failures = isRight ? [] : ["afterwards, \(wrongBytes)"]
                let bad = try await cache.stats().integrity.badBlocks
                if bad > 0 { failures.append("\(bad) bad blocks") }
                try await cache.context.commits.flush()
                _ = try await cache.context.store.reconcile()
                return failures + (try await cache.context.store.audit(repairing: false).findings.map { "\($0)" })
            }
        } catch {
            return ["the next life fails: \(error)"]
        }
    }

    @Test func writesAndReadsThatComeInPiecesAreMadeWhole() async throws {
        let bench = try Bench(LoopbackAsset(size: 300_000))
        let disk = FaultyDisk()
        disk.limitWrites(to: 1000)
        disk.limitReads(to: 777)
        try await bench.cache(disk: disk) { $0.verification = .always }.run { cache in
            for _ in 0..<2 {
                let read = try await cache.body(of: "a.mp4")
                #expect(read.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            }
            #expect(try await cache.stats().integrity.badBlocks == 0)
        }
    }
}
