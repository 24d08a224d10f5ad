import CacheCore
import Testing
import TestChance

@Suite struct ByteRangeSetTests {
    @Test("Joins runs that overlap or touch")
    func joinsRunsThatOverlapOrTouch() {
        var set = ByteRangeSet([10..<20, 30..<40, 50..<60])

        #expect(set.insert(20..<30) == 10)
        #expect(set.runs == [10..<40, 50..<60])
        #expect(set.insert(35..<55) == 10)
        #expect(set.runs == [10..<60])
        #expect(set.byteCount == 50)
    }

    @Test("Inserting present bytes adds nothing")
    func insertingWhatIsThereAddsNothing() {
        var set = ByteRangeSet([10..<20])

        #expect(set.insert(12..<18) == 0)
        #expect(set.insert(15..<15) == 0)
        #expect(set.runs == [10..<20])
    }

    @Test("Removing cuts a run in two")
    func removingCutsARunInTwo() {
        var set = ByteRangeSet([0..<100])

        #expect(set.remove(40..<60) == 20)
        #expect(set.runs == [0..<40, 60..<100])
        #expect(set.remove(40..<60) == 0)
        #expect(set.remove(30..<70) == 20)
        #expect(set.runs == [0..<30, 70..<100])
        #expect(set.byteCount == 60)
    }

    @Test("Finds runs and gaps")
    func findsRunsAndGaps() {
        let set = ByteRangeSet([10..<20, 30..<40])

        #expect(set.run(containing: 19) == 10..<20)
        #expect(set.run(containing: 20) == nil)
        #expect(set.run(startingFrom: 11) == 30..<40)
        #expect(set.run(startingFrom: 31) == nil)
        #expect(set.runs(in: 15..<35) == [15..<20, 30..<35])
        #expect(set.gaps(in: 5..<45) == [5..<10, 20..<30, 40..<45])
        #expect(set.gaps(in: 12..<18) == [])
        #expect(set.contains(12..<18))
        #expect(!set.contains(12..<31))
        #expect(set.byteCount(in: 15..<35) == 10)
    }

    @Test("Matches a set of single bytes")
    func agreesWithASetOfSingleBytes() {
        var (random, seed) = SeededRandom.announced()
        for _ in 0..<200 {
            var set = ByteRangeSet()
            var model = Set<Int64>()
            for _ in 0..<40 {
                let run = Self.run(&random)
                let before = model
                if Bool.random(using: &random) {
                    model.formUnion(run)
                    #expect(set.insert(run) == Int64(model.count - before.count), "seed \(seed)")
                } else {
                    model.subtract(run)
                    #expect(set.remove(run) == Int64(before.count - model.count), "seed \(seed)")
                }
                check(set, model, asking: Self.run(&random), seed)
            }
        }
    }

    private static func run(_ random: inout SeededRandom) -> ByteRange {
        let start = Int64.random(in: 0..<60, using: &random)
        return start..<start + Int64.random(in: 0..<16, using: &random)
    }

    private func check(_ set: ByteRangeSet, _ model: Set<Int64>, asking range: ByteRange, _ seed: UInt64) {
        #expect(Set(set.runs.joined()) == model, "seed \(seed)")
        #expect(set.byteCount == Int64(model.count), "seed \(seed)")
        #expect(zip(set.runs, set.runs.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound }, "seed \(seed)")
        #expect(Set(set.runs(in: range).joined()) == model.intersection(range), "seed \(seed)")
        #expect(Set(set.gaps(in: range).joined()) == Set(range).subtracting(model), "seed \(seed)")
        #expect(set.contains(range) == model.isSuperset(of: range), "seed \(seed)")
        #expect(set.byteCount(in: range) == Int64(model.intersection(range).count), "seed \(seed)")
        #expect((set.run(containing: range.lowerBound) != nil) == model.contains(range.lowerBound), "seed \(seed)")
    }
}
