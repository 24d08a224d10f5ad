import CacheCore
import Testing
import TestChance

@Suite struct FillLedgerModelTests {
    @Test func whateverReadersFillsAndEvictionsDoTheRulesHoldAndNobodyWaitsForever() {
        var seeds = SeededRandom.announced().random
        var (served, told) = (0, 0)
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
            told += model.told
            if !model.complaints.isEmpty { break }
        }
        #expect(served > 300)
        #expect(told > 10)
    }
}

extension FillLedgerModel {
    /// Somebody does something.
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
            case 5: spoil()
            default: surrender()
            }
        case 4...5: left()
        case 6...12:
            if let id = ids(of: fills).randomElement(using: &random) { proceed(id, mayBreak: true) }
        default: lookOnce()
        }
    }

    /// What must be true after every step.
    func verify(after step: Int) {
        check(
            ledger.extents.byteCount == Int64(isOnDisk.count { $0 }) && ledger.extents.runs.allSatisfy(areOnDisk),
            "step \(step): the extents are not what arrived and was not surrendered")
        check(ledger.readerCount == readers.count + leases.count, "step \(step): \(ledger.readerCount) readers")
        check(ledger.fillCount == fills.count, "step \(step): \(ledger.fillCount) fills of \(fills.count)")
        for (id, reader) in readers where reader.isWaiting {
            check(willHear(reader), "step \(step): reader \(id.number) of \(String(describing: reader.wanted)) is lost")
        }
    }

    private func areOnDisk(_ run: ByteRange) -> Bool { run.allSatisfy { isOnDisk[Int($0)] } }

    /// Whether something that is under way will wake a waiting reader, or tell it.
    private func willHear(_ reader: Reader) -> Bool {
        guard let position = reader.wanted?.lowerBound else { return !fills.isEmpty }
        return fills.values.contains { $0.isDescribing || ($0.remaining.contains(position) && !$0.isPaused) }
            || leaving.joined().contains { !hasRanges || $0.contains(position) }
    }

    /// Everything that is under way comes to a good end: so must every reader.
    func drain() {
        for _ in 0..<20_000 where complaints.isEmpty {
            guard !readers.isEmpty || !fills.isEmpty || !leaving.isEmpty else { return }
            left()
            if let id = ids(of: fills).randomElement(using: &random) { proceed(id, mayBreak: false) }
            lookOnce()
        }
        check(false, "\(readers.count) readers and \(fills.count) fills never end")
    }

    private func lookOnce() {
        guard let index = awake.indices.randomElement(using: &random) else { return }
        look(awake.remove(at: index))
    }

    /// In an order that does not depend on hashing, so that a seed tells the whole story.
    private func ids<Value>(of table: [FillLedger.ReaderID: Value]) -> [FillLedger.ReaderID] {
        table.keys.sorted { $0.number < $1.number }
    }

    private func ids<Value>(of table: [FillLedger.FillID: Value]) -> [FillLedger.FillID] {
        table.keys.sorted { $0.number < $1.number }
    }
}
