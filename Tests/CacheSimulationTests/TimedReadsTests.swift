import CacheCore
import TestChance
import Testing

@testable import CacheSimulation

@Suite struct TimedReadsTests {
    private static let epoch = Timestamp(seconds: 1_000_000)
    private static let mebibyte: Int64 = 1 << 20

    private func read(
        _ asset: UInt64, _ run: ByteRange, at seconds: Double, taking span: Double = 0
    ) -> ReadTrace.Read {
        ReadTrace.Read(
            asset: AssetID(high: 0, low: asset), run: run, at: Self.epoch + .seconds(seconds), span: .seconds(span))
    }

    @Test("Long reads are interleaved with other reads in pieces")
    func readsThatTookAWhileComeInPiecesBetweenTheOthers() {
        let reads = [
            read(1, 500..<4 * Self.mebibyte, at: 0, taking: 30), read(2, 0..<16 * Self.mebibyte, at: 10),
            read(3, Self.mebibyte..<3 * Self.mebibyte, at: 15, taking: 5), read(4, 0..<100, at: 40),
        ]
        let pieces = Array(TimedReads(reads))

        #expect(pieces.map(\.asset.low) == [1, 1, 2, 3, 1, 3, 1, 4])
        #expect(pieces.map { $0.at.since(Self.epoch) } == [0, 10, 10, 15, 20, 20, 30, 40].map(Duration.seconds))
        let first = pieces.filter { $0.asset.low == 1 }.map(\.run)
        #expect(first.map(\.lowerBound) == [500, Self.mebibyte, 2 * Self.mebibyte, 3 * Self.mebibyte])
        #expect(first.map(\.upperBound) == [1, 2, 3, 4].map { $0 * Self.mebibyte })
        #expect(pieces[2].run == reads[1].run && pieces.allSatisfy { $0.span == .zero })
    }

    @Test("No byte is lost, and time never decreases")
    func noByteIsLostAndTimeGoesForwards() {
        var random = SeededRandom(seed: 21)
        var reads: [ReadTrace.Read] = []
        var seconds = 0.0
        for number in 0..<3000 as Range<UInt64> {
            seconds += Double.random(in: -1...20, using: &random)
            let start = Int64.random(in: 0..<Self.mebibyte, using: &random)
            let length = Int64.random(in: 1..<16 * Self.mebibyte, using: &random)
            let span = number % 3 == 0 ? 0 : Double.random(in: 0...317.5, using: &random)
            reads.append(read(number, start..<start + length, at: seconds, taking: span))
        }
        let pieces = Array(TimedReads(reads))
        let runs = Dictionary(grouping: pieces, by: \.asset.low).mapValues { ByteRangeSet($0.map(\.run)) }

        #expect(reads.allSatisfy { runs[$0.asset.low] == ByteRangeSet([$0.run]) })
        #expect(pieces.reduce(0) { $0 + $1.run.length } == reads.reduce(0) { $0 + $1.run.length })
        let steps = zip(pieces, pieces.dropFirst()).map { $1.at.since($0.at) }
        #expect(steps.allSatisfy { $0 > .seconds(-2) })
    }
}
