import CacheCore
import CacheSimulation
import Foundation

/// Byte hits and moved bytes of fleets beside one node with the capacity of all, on the trace of a media library.
struct FleetTable {
    /// A change of the fleet half way through the trace.
    private enum Change { case none, leave, join }

    let trace: MediaTrace
    /// The numbers of nodes.
    let sizes: [Int]

    /// A tenth of all distinct bytes.
    private var capacity: Int64 { trace.footprint / 10 }

    func print() {
        let one = fleet(FleetSimulation.Settings(nodes: 1), .none)
        Swift.print("\n\(trace.name), capacity of all nodes 10 %, S3-FIFO")
        Swift.print(
            "repeated: bytes from the upstream that another node has, in per cent of the capacity; with a change, those of the day after it"
        )
        Swift.print(padded("one node", 34), "byte hits \((100 * one.byteHitRatio).rounded(2)) %")
        for count in sizes {
            for (name, points, factor, shares) in [
                ("weight 1", 16, nil, false), ("weight 100", 1600, nil, false),
                ("weight 100, load 150", 1600, 1.5, false),
                ("weight 100, peers", 1600, nil, true), ("weight 100, load 150, peers", 1600, 1.5, true),
            ] as [(String, Int, Double?, Bool)] {
                let settings = FleetSimulation.Settings(
                    nodes: count, points: points, loadFactor: factor, sharesBytes: shares)
                let still = fleet(settings, .none)
                let (left, joined) = (fleet(settings, .leave), fleet(settings, .join))
                Swift.print(
                    padded("\(count) nodes, \(name)", 40), "byte hits \((100 * still.byteHitRatio).rounded(2)) %",
                    " max ÷ mean \(still.imbalance.rounded(2))",
                    " from peers \((100 * Double(still.peerBytes) / Double(max(1, still.bytes))).rounded(2)) %",
                    " repeated \(repeated(still)), with a leave \(repeated(left)), a join \(repeated(joined))")
                fflush(nil)
            }
        }
    }

    private func repeated(_ fleet: FleetSimulation) -> Double {
        (100 * Double(fleet.repeatedBytes) / Double(capacity)).rounded(1)
    }

    /// Simulates the trace. For a join, one of `nodes` is absent in the first half; the others have its capacity then.
    private func fleet(_ settings: FleetSimulation.Settings, _ change: Change) -> FleetSimulation {
        let own = capacity / Int64(settings.nodes)
        var fleet = FleetSimulation(settings) {
            PolicySimulation(
                policy: EvictionAlgorithm.s3fifo.policy(capacityBytes: own),
                grid: SegmentGrid(segmentBytes: MediaTrace.blockBytes))
        }
        if change == .join { fleet.set(0, isPresent: false) }
        for (index, read) in trace.reads.enumerated() {
            if index == trace.reads.count / 2, change != .none {
                fleet.set(0, isPresent: change == .join, at: read.at)
            }
            fleet.read(read.run, of: read.asset, at: read.at)
        }
        return fleet
    }
}
