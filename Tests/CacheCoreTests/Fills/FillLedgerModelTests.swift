import CacheCore
import Testing
import TestChance

@Suite struct FillLedgerModelTests {
    @Test("Through random reads, fills and evictions the invariants hold and no reader hangs")
    func whateverReadersFillsAndEvictionsDoTheRulesHoldAndNobodyWaitsForever() {
        var seeds = SeededRandom.announced().random
        var (served, notified) = (0, 0)
        for _ in 0..<300 {
            let seed = seeds.next()
            let model = FillLedgerModel(seed: seed)
            for step in 0..<300 where model.complaints.isEmpty {
                model.step()
                model.verify(after: step)
            }
            model.drain()
            #expect(model.complaints.isEmpty, "seed \(seed): \(model.complaints.prefix(3))")
            served += model.served
            notified += model.notified
            if !model.complaints.isEmpty { break }
        }
        #expect(served > 300)
        #expect(notified > 10)
    }
}

extension FillLedgerModel {
    /// Performs a random action.
    func step() {
        ledger.now += .milliseconds(Int.random(in: 0..<400, using: &random))
        if Int.random(in: 0..<10, using: &random) == 0 { perform(ledger.tick()) }
        switch Int.random(in: 0..<20, using: &random) {
        case 0...1 where readers.count < 8: join()
        case 2:
            if let id = ids(of: readers).randomElement(using: &random) { leave(id) }
        case 3:
            switch Int.random(in: 0..<12, using: &random) {
            case 0: stop()
            case 1...4: lease()
            case 5: invalidate()
            case 6:
                let range = Int64.random(in: 0..<length, using: &random)..<length
                anticipated = range
                perform(ledger.anticipate(range))
                anticipated = nil
            default: beginEviction()
            }
        case 4...5: left()
        case 6...12:
            if let id = ids(of: fills).randomElement(using: &random) { proceed(id, mayBreak: true) }
        default: lookOnce()
        }
    }

    /// Checks the invariants after a step.
    func verify(after step: Int) {
        check(
            ledger.extents.byteCount == onDisk(0..<length) && ledger.extents.runs.allSatisfy(areOnDisk),
            "step \(step): the extents differ from the model")
        check(
            ledger.readerCount == readers.count + leases.count,
            "step \(step): \(ledger.readerCount) readers, expected \(readers.count + leases.count)")
        check(ledger.fillCount == fills.count, "step \(step): \(ledger.fillCount) fills, expected \(fills.count)")
        for (id, reader) in readers where reader.isWaiting {
            check(
                willHear(reader) || ledger.repeatsAt(id) != nil,
                "step \(step): no event is pending for reader \(id.number) of \(String(describing: reader.wanted))")
        }
    }

    private func areOnDisk(_ run: ByteRange) -> Bool { onDisk(run) == run.length }

    /// The number of bytes of the range that are on disk. Not a closure for each byte: without optimization, the test would
    /// spend its time in it.
    private func onDisk(_ range: ByteRange) -> Int64 {
        isOnDisk.withUnsafeBufferPointer { isOnDisk in
            var (count, byte) = (0 as Int64, range.lowerBound)
            while byte < range.upperBound {
                if isOnDisk[Int(byte)] { count += 1 }
                byte += 1
            }
            return count
        }
    }

    /// Whether a running fill or eviction will notify the waiting reader.
    private func willHear(_ reader: Reader) -> Bool {
        guard let position = reader.wanted?.lowerBound else { return !fills.isEmpty }
        return fills.values.contains { $0.isDescribing || ($0.remaining.contains(position) && !$0.isPaused) }
            || evicting.joined().contains { !hasRanges || $0.contains(position) }
    }

    /// Completes all running fills and evictions. Every reader must end.
    func drain() {
        for _ in 0..<20_000 where complaints.isEmpty {
            guard !readers.isEmpty || !fills.isEmpty || !evicting.isEmpty else { return }
            left()
            ledger.now += .milliseconds(100)
            perform(ledger.tick())
            if let id = ids(of: fills).randomElement(using: &random) { proceed(id, mayBreak: false) }
            lookOnce()
        }
        check(false, "\(readers.count) readers and \(fills.count) fills do not end")
    }

    private func lookOnce() {
        guard let index = awake.indices.randomElement(using: &random) else { return }
        look(awake.remove(at: index))
    }

    /// The order is independent of hashing, so that a seed determines the whole run.
    private func ids<Value>(of table: [FillLedger.ReaderID: Value]) -> [FillLedger.ReaderID] {
        table.keys.sorted { $0.number < $1.number }
    }

    private func ids<Value>(of table: [FillLedger.FillID: Value]) -> [FillLedger.FillID] {
        table.keys.sorted { $0.number < $1.number }
    }
}
