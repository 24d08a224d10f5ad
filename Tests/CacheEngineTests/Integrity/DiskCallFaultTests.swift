import CacheCore
import CacheStore
import CacheTestKit
import Foundation
import Testing

@testable import CacheEngine

/// Fails the n-th disk call while a cache fills, serves, evicts, purges and restarts. Every read returns the right
/// bytes or fails. The service recovers, the next start succeeds, and the store is consistent.
///
/// The normal test run samples a few n; `make faults ONLY=calls` tries all.
@Suite(.timeLimit(.minutes(120))) struct DiskCallFaultTests {
    /// The fault injected into a disk call.
    private enum Fault: Sendable {
        case failure(Int32)
        /// A read or a write transfers only one byte.
        case short
    }

    private static let faults: [Fault] =
        [ENOSPC, EIO, EDQUOT, EFBIG, EMFILE, ENFILE, EINTR].map { .failure($0) } + [.short]
    private static let size = 900_000
    private let sweep = Sweep("calls")

    @Test("After any failing disk call no wrong byte is served")
    func whicheverCallFailsNothingWrongIsServed() async throws {
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

    /// Runs one cache life per fault concurrently, because each mostly waits.
    private static func lives(from first: Int, _ step: Int) async throws -> [String] {
        try await withThrowingTaskGroup(of: [String].self) { group in
            for (number, fault) in faults.enumerated() {
                // A sampled run fails different calls for each fault.
                let count = first + number * step / faults.count
                group.addTask {
                    try await life((fault, count: count)).failures.map { "call \(count), \(fault): \($0)" }
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    private static let wrongBytes = "wrong bytes"

    /// Runs a cache on a disk with one failing call, then verifies the store with a second cache. Returns the number of
    /// disk calls.
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
        // The start may fail with an error.
        guard let test = try? bench.cache(disk: disk) else { return [] }
        let failures = try? await test.run { cache -> [String] in
            var isRight = true
            for range in [0..<300_000, 200_000..<900_000, 0..<900_000] as [ByteRange] {
                isRight = await reads(bench, cache, range) && isRight
            }
            // Each of these operations may fail.
            _ = try? await cache.evictions.evict(.free(bytes: 300_000), isDryRun: false)
            isRight = await reads(bench, cache, 100_000..<800_000) && isRight
            if let id = try? await bench.id(in: cache) { try? await cache.assets.delete(id, isSoft: false) }
            isRight = await reads(bench, cache, 0..<600_000) && isRight
            // After the fault the service must recover.
            disk.heal()
            let isWell = try await eventually(within: .seconds(30)) {
                (try? await cache.body(of: "a.mp4", 0..<900_000).bytes.isSame(as: bench.asset.bytes(0..<900_000)))
                    ?? false
            }
            return (isRight ? [] : [wrongBytes]) + (isWell ? [] : ["the service did not recover"])
        }
        return failures ?? []
    }

    /// Whether the read failed or returned the right bytes.
    private static func reads(_ bench: Bench, _ cache: AssetCache, _ range: ByteRange) async -> Bool {
        guard let read = try? await cache.body(of: "a.mp4", range) else { return true }
        return read.bytes.isSame(as: bench.asset.bytes(range))
    }

    /// Restarts the cache on a healthy disk and verifies the whole store.
    private static func look(_ bench: Bench) async -> [String] {
        do {
            return try await bench.cache { $0.verification = .always }.run { cache -> [String] in
                let read = try await cache.body(of: "a.mp4")
                let isRight = read.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size))
                var failures = isRight ? [] : ["after the restart: \(wrongBytes)"]
                let bad = try await cache.statistics.snapshot().integrity.badBlocks
                if bad > 0 { failures.append("\(bad) bad blocks") }
                try await cache.context.commits.flush()
                _ = try await cache.context.store.reconcile()
                return failures + (try await cache.context.store.audit(repairing: false).findings.map { "\($0)" })
            }
        } catch {
            return ["the restarted cache failed: \(error)"]
        }
    }

    @Test("Short writes and short reads are completed")
    func writesAndReadsThatComeInPiecesAreMadeWhole() async throws {
        let bench = try Bench(LoopbackAsset(size: 300_000))
        let disk = FaultyDisk()
        disk.limitWrites(to: 1000)
        disk.limitReads(to: 777)
        try await bench.cache(disk: disk) { $0.verification = .always }.run { cache in
            for _ in 0..<2 {
                let read = try await cache.body(of: "a.mp4")
                #expect(read.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            }
            #expect(try await cache.statistics.snapshot().integrity.badBlocks == 0)
        }
    }
}
