package import CacheCore

/// Simulates several nodes behind a router that hashes the asset: each has a cache of its own.
///
/// The router has a ring with several points for each node, as HAProxy with `hash-type consistent`. With a bounded load
/// (Mirrokni et al., "Consistent Hashing with Bounded Loads", SODA 2018) a read goes on to the next node on the ring while
/// its node has more than its share of the bytes of the last minute.
package struct FleetSimulation: Sendable {
    package struct Settings: Sendable {
        package var nodes: Int
        /// The points of a node on the ring. HAProxy has 16 for each unit of weight.
        package var points: Int
        /// The greatest load in relation to the mean; nil: no limit.
        package var loadFactor: Double?
        /// Whether a node takes missing runs from another one that has them as a whole.
        package var sharesBytes: Bool
        /// The time for which a node that has left serves the others.
        package var leaveTime: Duration

        package init(
            nodes: Int, points: Int = 16, loadFactor: Double? = nil, sharesBytes: Bool = false,
            leaveTime: Duration = .seconds(600)
        ) {
            self.nodes = nodes
            self.points = points
            self.loadFactor = loadFactor
            self.sharesBytes = sharesBytes
            self.leaveTime = leaveTime
        }
    }

    private struct Node {
        var cache: PolicySimulation
        /// Whether the router sends reads to the node.
        var isPresent = true
        /// The time until which other nodes ask it; nil: it is present, or was never.
        var leavesAt: Timestamp?
        var bytes: Int64 = 0
        /// The bytes of the last minute, decaying.
        var load = 0.0
        var loadAt = Timestamp(milliseconds: 0)
    }

    /// The time in which a load decays to 1/e.
    private static let loadTime = 60_000.0

    private let settings: Settings
    private var nodes: [Node]
    /// Points in order, with the index of their node.
    private let ring: [(point: UInt64, node: Int)]
    private var changedAt: Timestamp?
    /// The bytes that were read, and those that came from the upstream and from other nodes.
    package private(set) var bytes: Int64 = 0
    package private(set) var upstreamBytes: Int64 = 0
    package private(set) var peerBytes: Int64 = 0
    /// The bytes from the upstream that another node has on its disk, also one that has left: all, or those within a day
    /// after the last change of the fleet.
    package private(set) var repeatedBytes: Int64 = 0

    /// `makeCache` makes the empty cache of a node.
    package init(_ settings: Settings, makeCache: () -> PolicySimulation) {
        self.settings = settings
        nodes = (0..<settings.nodes).map { _ in Node(cache: makeCache()) }
        ring = (0..<settings.nodes).flatMap { node in
            (0..<settings.points).map { (Self.mixed(UInt64(node) << 32 | UInt64($0) | 1 << 63), node) }
        }.sorted { $0.0 < $1.0 }
    }

    package var byteHitRatio: Double { bytes == 0 ? 0 : 1 - Double(upstreamBytes) / Double(bytes) }

    /// The bytes read at the node with most of them, in relation to the mean of the present nodes.
    package var imbalance: Double {
        let loads = nodes.filter(\.isPresent).map(\.bytes)
        let sum = loads.reduce(0, +)
        return sum == 0 ? 1 : Double(loads.max() ?? 0) * Double(loads.count) / Double(sum)
    }

    /// The node joins, or leaves in order: no reads go to it any more, and it serves others for a while.
    package mutating func set(_ node: Int, isPresent: Bool, at now: Timestamp? = nil) {
        nodes[node].isPresent = isPresent
        changedAt = now ?? changedAt
        nodes[node].leavesAt = isPresent ? nil : now.map { $0 + settings.leaveTime }
    }

    /// Reads a run of an asset at the node that the router chooses.
    package mutating func read(_ run: ByteRange, of asset: AssetID, at now: Timestamp) {
        guard let index = node(for: asset, at: now) else { return }
        let before = nodes[index].cache.tally.missedBytes
        let holders = nodes.indices.filter { $0 != index && nodes[$0].cache.holds(run, of: asset) }
        let isNear = settings.sharesBytes && holders.contains { isAsked($0, at: now) }
        nodes[index].cache.read(run, of: asset, at: now)
        let missed = nodes[index].cache.tally.missedBytes - before
        bytes += run.length
        if isNear { peerBytes += missed } else { upstreamBytes += missed }
        if !isNear, !holders.isEmpty, changedAt.map({ now.since($0) <= .seconds(86_400) }) ?? true {
            repeatedBytes += missed
        }
        nodes[index].bytes += run.length
        nodes[index].load = load(of: index, at: now) + Double(run.length)
        nodes[index].loadAt = now
    }

    /// The present node behind the asset's place on the ring, within the limit of its load; nil: no node is present.
    package func node(for asset: AssetID, at now: Timestamp) -> Int? {
        let place = Self.mixed(asset.low ^ Self.mixed(asset.high))
        var low = 0
        var high = ring.count
        while low < high {
            let middle = (low + high) / 2
            if ring[middle].point < place { low = middle + 1 } else { high = middle }
        }
        let present = ring.indices.lazy.map { ring[(low + $0) % ring.count].node }.filter { nodes[$0].isPresent }
        guard let factor = settings.loadFactor else { return present.first }
        let loads = nodes.indices.filter { nodes[$0].isPresent }.map { load(of: $0, at: now) }
        let limit = factor * loads.reduce(0, +) / Double(max(1, loads.count))
        return present.first { load(of: $0, at: now) <= limit } ?? present.first
    }

    private func load(of node: Int, at now: Timestamp) -> Double {
        let age = Double(now.milliseconds - nodes[node].loadAt.milliseconds)
        // 1 / (1 + x + x²/2) instead of an exponential function: the form of the decay does not matter.
        let x = max(0, age) / Self.loadTime
        return nodes[node].load / (1 + x + x * x / 2)
    }

    /// Whether other nodes ask the node.
    private func isAsked(_ node: Int, at now: Timestamp) -> Bool {
        nodes[node].isPresent || nodes[node].leavesAt.map { $0 > now } ?? false
    }

    /// A mixing function with 64 bits (Vigna, SplitMix64).
    private static func mixed(_ value: UInt64) -> UInt64 {
        var value = value &+ 0x9E37_79B9_7F4A_7C15
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
