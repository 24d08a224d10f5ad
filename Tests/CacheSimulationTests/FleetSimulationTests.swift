import CacheCore
import CacheSimulation
import Testing

/// Reads of whole blocks in fleets of nodes with room for ten blocks each.
@Suite struct FleetSimulationTests {
    private static let block: Int64 = 1 << 20
    private static let run = ByteRange(offset: 0, length: block)
    private static let start = Timestamp(milliseconds: 1_000_000)

    private static func fleet(
        _ nodes: Int, loadFactor: Double? = nil, sharesBytes: Bool = false
    ) -> FleetSimulation {
        let settings = FleetSimulation.Settings(
            nodes: nodes, points: 100, loadFactor: loadFactor, sharesBytes: sharesBytes)
        return FleetSimulation(settings) {
            PolicySimulation(
                policy: EvictionAlgorithm.lru.policy(capacityBytes: 10 * block), grid: SegmentGrid(segmentBytes: block))
        }
    }

    private static func asset(_ number: Int) -> AssetID { AssetID(high: 7, low: UInt64(number)) }

    @Test("One node is the same as no fleet")
    func oneNodeIsTheSameAsNoFleet() {
        var fleet = Self.fleet(1)
        for number in [1, 2, 1, 3, 2] { fleet.read(Self.run, of: Self.asset(number), at: Self.start) }
        #expect(fleet.bytes == 5 * Self.block && fleet.upstreamBytes == 3 * Self.block)
        #expect(fleet.byteHitRatio == 0.4 && fleet.imbalance == 1 && fleet.repeatedBytes == 0)
    }

    @Test("Without a node only its assets move, and they move back")
    func onlyTheAssetsOfANodeMove() {
        var fleet = Self.fleet(5)
        let before = (0..<1000).map { fleet.node(for: Self.asset($0), at: Self.start) }
        fleet.set(2, isPresent: false)
        let without = (0..<1000).map { fleet.node(for: Self.asset($0), at: Self.start) }
        #expect(!without.contains(2))
        #expect(zip(before, without).allSatisfy { $0 == $1 || $0 == 2 })
        let shares = (0..<5).map { node in before.count { $0 == node } }
        #expect(shares.allSatisfy { (120...280).contains($0) }, "\(shares)")
        fleet.set(2, isPresent: true)
        #expect((0..<1000).map { fleet.node(for: Self.asset($0), at: Self.start) } == before)
    }

    @Test("A node that leaves in order serves the others for a while", arguments: [true, false])
    func aLeavingNodeServesTheOthers(sharesBytes: Bool) {
        var fleet = Self.fleet(2, sharesBytes: sharesBytes)
        let own = (0..<100).map(Self.asset).filter { fleet.node(for: $0, at: Self.start) == 0 }.prefix(2)
        for asset in own { fleet.read(Self.run, of: asset, at: Self.start) }
        fleet.set(0, isPresent: false, at: Self.start)
        fleet.read(Self.run, of: own[0], at: Self.start + .seconds(599))
        #expect(fleet.peerBytes == (sharesBytes ? Self.block : 0))
        #expect(fleet.repeatedBytes == (sharesBytes ? 0 : Self.block))
        fleet.read(Self.run, of: own[1], at: Self.start + .seconds(601))
        #expect(fleet.upstreamBytes == (sharesBytes ? 3 : 4) * Self.block)
        #expect(fleet.repeatedBytes == (sharesBytes ? 1 : 2) * Self.block)
    }

    @Test("A bounded load spreads a popular asset, and the load decays")
    func aBoundedLoadSpreadsAPopularAsset() {
        var (bounded, unbounded) = (Self.fleet(3, loadFactor: 1.5), Self.fleet(3))
        for _ in 0..<30 {
            bounded.read(Self.run, of: Self.asset(1), at: Self.start)
            unbounded.read(Self.run, of: Self.asset(1), at: Self.start)
        }
        #expect(unbounded.imbalance == 3 && unbounded.upstreamBytes == Self.block)
        // Two nodes with n reads each have 1.5 times the mean, which is permitted: they take turns.
        #expect(bounded.imbalance == 1.5 && bounded.upstreamBytes == 2 * Self.block)
        #expect(bounded.repeatedBytes == Self.block)
        let first = unbounded.node(for: Self.asset(1), at: Self.start)
        #expect(bounded.node(for: Self.asset(1), at: Self.start + .seconds(36_000)) == first)
    }
}
