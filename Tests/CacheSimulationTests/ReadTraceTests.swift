import CacheCore
import TestChance
import Testing

@testable import CacheSimulation

@Suite struct ReadTraceTests {
    private static let epoch = Timestamp(seconds: 1_000_000)
    private static let chunk = ReadTrace.chunkBytes

    private func asset(_ number: UInt64) -> AssetID { AssetID(high: 7, low: number) }

    @Test("A read is recorded per chunk with offset, length and time")
    func aReadIsKeptByChunksWithItsPlaceItsLengthAndItsTime() {
        var trace = ReadTrace(epoch: Self.epoch)
        trace.note(Self.chunk - 1000..<Self.chunk + 500, of: asset(1), at: Self.epoch + .seconds(10))
        trace.note(0..<0, of: asset(1), at: Self.epoch)
        trace.note(1 << 50..<(1 << 50) + 1, of: asset(1), at: Self.epoch)
        trace.note(20_000..<20_001, of: asset(2), at: Self.epoch - .seconds(5))
        let reads = Array(trace.reads(since: Self.epoch))

        #expect(reads.map(\.run.length) == [1000, 500, 1])
        #expect(reads.map(\.run.lowerBound) == [Self.chunk - 16384, Self.chunk, 16384])
        #expect(reads.map(\.at) == [Self.epoch + .seconds(10), Self.epoch + .seconds(10), Self.epoch])
        #expect(reads[0].asset == reads[1].asset && reads[0].asset != reads[2].asset)
        #expect(Array(trace.reads(since: Self.epoch + .seconds(1))).count == 2)
    }

    @Test("Consecutive reads are merged within a chunk")
    func readsThatGoOnFromOneAnotherAreOneWithinAChunk() {
        var trace = ReadTrace(epoch: Self.epoch)
        for part in 0..<20 as Range<Int64> {
            let run = ByteRange(offset: part << 20, length: 1 << 20)
            for number in 1...2 as ClosedRange<UInt64> {
                trace.note(run, of: asset(number), at: Self.epoch + .seconds(part))
            }
        }
        trace.note(20 << 20..<21 << 20, of: asset(1), at: Self.epoch + .seconds(16 + 300))
        trace.note(0..<1 << 20, of: asset(2), at: Self.epoch + .seconds(400))
        trace.note(1 << 20..<(1 << 20) + 1000, of: asset(2), at: Self.epoch + .seconds(399))
        trace.note(5000..<20_000, of: asset(3), at: Self.epoch + .seconds(500))
        trace.note(20_000..<70_000, of: asset(3), at: Self.epoch + .seconds(501))
        let reads = Array(trace.reads(since: Self.epoch))

        let mebibyte: Int64 = 1 << 20
        let lengths = [16 * mebibyte, 16 * mebibyte, 4 * mebibyte, 4 * mebibyte, mebibyte, mebibyte, 1000, 65_000]
        let starts: [Int64] = [0, 0, 16, 16, 20, 0, 1, 0]
        let seconds: [Int64] = [0, 0, 16, 16, 316, 400, 399, 500]
        #expect(reads.map(\.run.length) == lengths)
        #expect(reads.map { $0.run.lowerBound / mebibyte } == starts)
        #expect(reads.map { $0.at.seconds - Self.epoch.seconds } == seconds)
        #expect(reads.map(\.span) == [15, 15, 2.5, 2.5, 0, 0, 0, 0].map(Duration.seconds))
    }

    @Test("A sample without the most read asset is corrected by its weight")
    func aSampleThatMissesWhatAllReadIsToldByItsWeight() {
        var trace = ReadTrace(limit: 1000, epoch: Self.epoch)
        for number in 0..<2000 as Range<UInt64> {
            trace.note(0..<100, of: asset(number), at: Self.epoch)
            trace.note(0..<900, of: asset(5000), at: Self.epoch)
        }
        let reads = Array(trace.reads(since: Self.epoch))
        let kept = reads.reduce(0) { $0 + $1.run.length }
        let weight = trace.weight(since: Self.epoch)

        #expect(trace.share < 1)
        #expect(abs(weight - Double(kept) / (2_000_000 * trace.share)) < 0.01 * weight, "\(weight)")
        #expect(trace.weight(since: Self.epoch + .seconds(1)) == 1)
    }

    @Test("A copy is unchanged while reads are recorded")
    func aCopyStaysAsItIsWhileMoreIsNoted() {
        var trace = ReadTrace(limit: 1000, epoch: Self.epoch)
        var copies: [(trace: ReadTrace, reads: [ReadTrace.Read])] = []
        for number in 0..<6000 as Range<Int64> {
            let run = ByteRange(offset: number % 7 << 20, length: 1 << 20)
            trace.note(run, of: asset(UInt64(number / 7)), at: Self.epoch)
            if number % 250 == 0 { copies.append((trace, Array(trace.reads(since: Self.epoch)))) }
        }

        #expect(copies.allSatisfy { Array($0.trace.reads(since: Self.epoch)) == $0.reads })
        #expect(copies.last.map { $0.reads.count > 100 } == true && trace.share < 1)
    }

    @Test("Above its limit the trace keeps all reads of fewer chunks")
    func whereMoreComesThanItHoldsItKeepsAllReadsOfFewerChunks() {
        var trace = ReadTrace(limit: 1000, epoch: Self.epoch)
        for round in 0..<4 as Range<Int64> {
            for number in 0..<1000 as Range<UInt64> {
                trace.note(0..<100, of: asset(number), at: Self.epoch + .seconds(round))
            }
        }
        let byAsset = Dictionary(grouping: trace.reads(since: Self.epoch), by: \.asset)

        #expect(trace.count <= 1000 && trace.count > 400)
        #expect(trace.share == 0.125 || trace.share == 0.25)
        #expect(byAsset.values.allSatisfy { $0.count == 4 })
        let half = trace.sampled(atMost: trace.count / 2)
        #expect(half.count <= trace.count / 2 && half.count > 0 && half.share < trace.share)
    }

    @Test("At the smallest sample the oldest reads are discarded")
    func whereTheSampleIsAsSmallAsItMayBeTheOldestGo() {
        var trace = ReadTrace(limit: 64, epoch: Self.epoch)
        for number in 0..<60_000 as Range<UInt64> {
            trace.note(0..<100, of: asset(number), at: Self.epoch + .seconds(Int(number)))
        }
        let reads = Array(trace.reads(since: Self.epoch))

        #expect(trace.share == 1.0 / 256)
        #expect(reads.count >= 32 && reads.count <= 64)
        #expect(reads.map(\.at) == reads.map(\.at).sorted() && reads[0].at > Self.epoch + .seconds(30_000))
    }
}
