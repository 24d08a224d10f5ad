import CacheCore
import Testing

@Suite struct SegmentGridTests {
    @Test(
        "Is the nearest power of two within bounds",
        arguments: [
            (nil, 16 << 20), (0, 1 << 20), (16 << 20, 1 << 20), (4 << 30, 1 << 20), (6 << 30, 2 << 20),
            (8 << 30, 2 << 20),
            (11 << 30, 2 << 20), (12 << 30, 4 << 20), (20 << 30, 4 << 20), (64 << 30, 16 << 20), (1 << 50, 16 << 20),
            (Int64.max, 16 << 20), (-1, 1 << 20),
        ] as [(Int64?, Int64)])
    func isTheNearestPowerOfTwoWithinBounds(capacity: Int64?, size: Int64) {
        #expect(SegmentGrid.size(capacity: capacity) == size)
        #expect(SegmentGrid(capacity: capacity).segmentBytes == size)
    }

    @Test("Cuts an asset into runs")
    func cutsAnAssetIntoRuns() {
        let grid = SegmentGrid(capacity: 0)
        let size = grid.segmentBytes

        #expect(grid.index(of: 0) == 0)
        #expect(grid.index(of: size - 1) == 0)
        #expect(grid.index(of: size) == 1)
        #expect(grid.indices(of: size - 1..<size + 1) == 0..<2)
        #expect(grid.indices(of: size..<2 * size) == 1..<2)
        #expect(grid.indices(of: 5..<5).isEmpty)
        #expect(grid.run(of: 3) == 3 * size..<4 * size)
        #expect(!grid.indices(of: 0..<Int64.max).isEmpty)
        #expect(!grid.indices(of: Int64.max - 1..<Int64.max).isEmpty)
    }
    @Test(
        "Accepts any reasonable size",
        arguments: [(Int64.min, 64), (64, 64), (1000, 1000), (.max, 1 << 30)] as [(Int64, Int64)])
    func canHaveAnySizeThatMakesSense(wanted: Int64, size: Int64) {
        let grid = SegmentGrid(segmentBytes: wanted)

        #expect(grid.segmentBytes == size)
        #expect(grid.run(of: .max).length == size)
        #expect(grid.indices(of: 0..<size) == 0..<1)
    }
}
