package import CacheCore
package import CacheEngine

/// The `Fleet` schema.
package struct FleetDocument: Codable {
    /// Another node, as this one sees it.
    package struct Peer: Codable {
        package var url, state: String
        package var lastError: String?
        package var requests: Requests
        /// Null: all nodes are asked for each asset, or none of this one is current.
        package var digest: Digest?

        /// The digest of the node's cache.
        package struct Digest: Codable {
            package var assets: Int
            package var ageSeconds: Double
        }

        /// The results of requests for bytes at hand.
        package struct Requests: Codable {
            package var hit, miss, timedOut, failed: Int64
        }
    }

    /// The name of the process in `CDN-Loop`.
    package var node: String
    /// `starting`, `ready`, `leaving` or `draining`.
    package var state: String
    /// Whether other nodes can prove themselves to this one.
    package var acceptsPeers: Bool
    package var peers: [Peer]
    /// The desired state in etcd; absent without etcd.
    package var etcd: Omittable<Etcd>

    /// The desired state in etcd, as this node has applied it.
    package struct Etcd: Codable {
        /// The names of fleet and node.
        package var fleet, name: String
        /// `reached`, or `lost` if the last attempt failed.
        package var state: String
        /// The time since the last contact; null: none since the start.
        package var lagSeconds: Double?
        /// The error of the last attempt, and the reason why the node is not ready.
        package var lastError, fault: String?
        /// The number of the last purge that is applied.
        package var purges: Int64
        package var origins: [OriginFault]
        package var nodes: [Node]
    }

    /// An origin of the fleet that this node cannot use.
    package struct OriginFault: Codable {
        package var name, error: String
    }

    /// A node with a live lease.
    package struct Node: Codable {
        package var name: String
        /// Null: it serves no other nodes.
        package var url: String?
        package var version, state: String
        /// The number of the last purge that it has applied.
        package var purges: Int64
        /// Null: no limit.
        package var capacityBytes: Int64?
        package var usedBytes: Int64
        /// The time since it has described itself.
        package var ageSeconds: Double
    }
}

/// The `FleetPurge` schema: a purge that all nodes apply.
package struct FleetPurgeDocument: Codable {
    package var number: Int64
    /// Whether all nodes with a live lease have applied it.
    package var complete: Bool
    /// The names of nodes.
    package var appliedBy, pending: [String]

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
                hit: count(.hit), miss: count(.miss), timedOut: count(.timedOut), failed: count(.failed)),
            digest: peer.digest.map { Digest(assets: $0.assets, ageSeconds: $0.age.documentSeconds) })
    }
}

/// The `FleetStatistics` schema: the statistics of all nodes, and sums of them.
package struct FleetStatisticsDocument: Encodable {
    struct Node: Encodable {
        /// Null: the node that answers.
        var url, error: String?
        /// The document `Stats` of the node; null: it did not answer.
        var stats: JSON?
    }

    /// Sums over the nodes that have answered.
    struct Total: Encodable {
        var requests: [String: Int64]
        var bytes: [String: Int64]
        var diskBytes: Int64
        /// Null: a node has no limit.
        var capacityBytes: Int64?
        /// The share of served bytes that came from no upstream; null: nothing was served.
        var byteHitRatio: Double?
    }

    /// Whether a node is missing in the sums.
    let partial: Bool
    let nodes: [Node]
    let total: Total

    package init(own: JSON, others: [(node: String, document: Result<JSON, CacheError>)]) {
        var nodes = [Node(stats: own)]
        for (url, document) in others {
            switch document {
            case .success(let stats): nodes.append(Node(url: url, stats: stats))
            case .failure(let error): nodes.append(Node(url: url, error: error.message))
            }
        }
        self.nodes = nodes
        partial = nodes.contains { $0.stats == nil }
        total = Total(of: nodes.compactMap(\.stats))
    }
}

extension FleetStatisticsDocument.Total {
    fileprivate init(of all: [JSON]) {
        let sums = { (group: String) in
            all.reduce(into: [String: Int64]()) { sums, stats in
                guard case .object(let members)? = stats[group] else { return }
                for case (let name, .integer(let value)) in members.map({ ($0.key, $0.value) }) {
                    sums[name, default: 0] &+= value
                }
            }
        }
        (requests, bytes) = (sums("requests"), sums("bytes"))
        let store = { (name: String) in
            all.map { stats -> Int64? in
                if case .integer(let value)? = stats["store"]?[name] { value } else { nil }
            }
        }
        diskBytes = store("diskBytes").reduce(0) { $0 &+ ($1 ?? 0) }
        let capacities = store("capacityBytes")
        capacityBytes = capacities.contains(nil) ? nil : capacities.reduce(0) { $0 &+ ($1 ?? 0) }
        let (served, cached) = (bytes["served"] ?? 0, bytes["servedFromCache"] ?? 0)
        byteHitRatio = served > 0 ? Double(cached) / Double(served) : nil
    }
}
