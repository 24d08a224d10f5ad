package import CacheCore

/// A purge of all nodes: the request, and the token that it belongs to.
struct FleetPurge: Codable, Sendable {
    /// The token, and its limits; nil: the service needs none.
    struct Owner: Codable, Sendable {
        var id: String
        var origins, prefixes: [String]?
    }

    /// A random identifier, and that of the purge before: numbers alone can repeat after etcd was restored.
    let id: String
    var previous = ""
    var request: JSON
    /// The time of the request, which its condition `olderThanSeconds` refers to.
    var at: Timestamp
    var owner: Owner?

    init(_ request: JSON, id: String, at now: Timestamp, by owner: TokenOwner?) {
        self.id = id
        self.request = request
        at = now
        self.owner = owner.map {
            Owner(id: $0.id, origins: $0.limits.origins?.sorted(), prefixes: $0.limits.prefixes)
        }
    }

    /// The token with its limits at the time of the request.
    var tokenOwner: TokenOwner? {
        owner.map { owner in
            TokenOwner(
                id: owner.id,
                limits: ContentLimits(origins: owner.origins.map { Set($0) }, prefixes: owner.prefixes))
        }
    }
}

/// A node of the fleet, as it describes itself in etcd. Its entry exists while its lease does.
package struct FleetNode: Codable, Hashable, Sendable {
    /// The key of the entry.
    package var name = ""
    /// The revision of the entry.
    package var revision: Int64 = 0
    /// The name of its store, by which two nodes with one name are told apart.
    var store: String
    /// The name of its process. Two processes have one store while one takes over from the other.
    var process: String
    /// The base URL for other nodes; empty: it serves none.
    package var url: String
    package var version: String
    package var state: String
    /// The number of the last purge that it has applied.
    package var purges: Int64
    /// The capacity and the usage of its disk in bytes; nil capacity: no limit.
    package var capacityBytes: Int64?
    package var usedBytes: Int64
    /// Its clock when it wrote the entry.
    package var at: Timestamp

    private enum CodingKeys: CodingKey {
        case store, process, url, version, state, purges, capacityBytes, usedBytes, at
    }

    init(
        name: String, store: String, process: String, url: String, version: String, state: String, purges: Int64,
        capacityBytes: Int64?,
        usedBytes: Int64, at: Timestamp
    ) {
        self.name = name
        self.store = store
        self.process = process
        self.url = url
        self.version = version
        self.state = state
        self.purges = purges
        self.capacityBytes = capacityBytes
        self.usedBytes = usedBytes
        self.at = at
    }

    /// Whether other nodes have to know of the change at once.
    func differsFromEntry(_ entry: FleetNode) -> Bool {
        (process, url, version, state, purges) != (entry.process, entry.url, entry.version, entry.state, entry.purges)
    }
}
