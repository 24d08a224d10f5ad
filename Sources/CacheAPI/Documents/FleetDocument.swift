import CacheCore
package import CacheEngine

/// The `Fleet` schema.
package struct FleetDocument: Codable {
    /// Another node, as this one sees it.
    package struct Peer: Codable {
        var url, state: String
        var lastError: String?
        var requests: Requests

        /// The results of requests for bytes at hand.
        struct Requests: Codable {
            var hit, miss, timedOut, failed: Int64
        }
    }

    /// The name of the process in `CDN-Loop`.
    var node: String
    /// `starting`, `ready`, `leaving` or `draining`.
    var state: String
    /// Whether other nodes can prove themselves to this one.
    var acceptsPeers: Bool
    var peers: [Peer]
    /// The desired state in etcd; absent without etcd.
    var etcd: Omittable<Etcd>

    /// The desired state in etcd, as this node has applied it.
    package struct Etcd: Codable {
        /// The names of fleet and node.
        var fleet, name: String
        /// `reached`, or `lost` if the last attempt failed.
        var state: String
        /// The time since the last contact; null: none since the start.
        var lagSeconds: Double?
        /// The error of the last attempt, and the reason why the node is not ready.
        var lastError, fault: String?
        /// The number of the last purge that is applied.
        var purges: Int64
        var origins: [OriginFault]
        var nodes: [Node]
    }

    /// An origin of the fleet that this node cannot use.
    struct OriginFault: Codable {
        var name, error: String
    }

    /// A node with a live lease.
    struct Node: Codable {
        var name: String
        /// Null: it serves no other nodes.
        var url: String?
        var version, state: String
        /// The number of the last purge that it has applied.
        var purges: Int64
        /// Null: no limit.
        var capacityBytes: Int64?
        var usedBytes: Int64
        /// The time since it has described itself.
        var ageSeconds: Double
    }
}

/// The `FleetPurge` schema: a purge that all nodes apply.
package struct FleetPurgeDocument: Codable {
    var number: Int64
    /// Whether all nodes with a live lease have applied it.
    var complete: Bool
    /// The names of nodes.
    var appliedBy, pending: [String]

    package init(_ purge: FleetPurgeProgress) {
        (number, complete, appliedBy, pending) = (purge.number, purge.isComplete, purge.appliedBy, purge.pending)
    }
}

extension FleetDocument.Etcd {
    init(_ report: FleetReport, at now: Timestamp) {
        self.init(
            fleet: report.fleet, name: report.node, state: report.lastError == nil ? "reached" : "lost",
            lagSeconds: report.lag?.documentSeconds, lastError: report.lastError, fault: report.fault,
            purges: report.purges,
            origins: report.originFaults.sorted { $0.key < $1.key }.map { .init(name: $0.key, error: $0.value) },
            nodes: report.nodes.map { node in
                .init(
                    name: node.name, url: node.url.isEmpty ? nil : node.url, version: node.version, state: node.state,
                    purges: node.purges, capacityBytes: node.capacityBytes, usedBytes: node.usedBytes,
                    ageSeconds: max(.zero, now.since(node.at)).documentSeconds)
            })
    }
}

extension FleetDocument.Peer {
    init(_ peer: PeerFigures) {
        let state = peer.isSelf ? "self" : peer.isSetAside ? "setAside" : peer.lastError == nil ? "ok" : "failing"
        let count = { (result: PeerFigures.Result) in peer.requests[result] ?? 0 }
        self.init(
            url: peer.node, state: state, lastError: peer.lastError,
            requests: Requests(
                hit: count(.hit), miss: count(.miss), timedOut: count(.timedOut), failed: count(.failed)))
    }
}
