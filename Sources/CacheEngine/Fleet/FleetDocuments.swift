package import CacheCore

/// A token with its limits, as nodes tell it to each other.
struct FleetTokenOwner: Codable, Hashable, Sendable {
    var id: String
    var origins, prefixes: [String]?

    init(_ owner: TokenOwner) {
        id = owner.id
        (origins, prefixes) = (owner.limits.origins?.sorted(), owner.limits.prefixes)
    }

    var owner: TokenOwner {
        TokenOwner(id: id, limits: ContentLimits(origins: origins.map { Set($0) }, prefixes: prefixes))
    }
}

/// A purge of all nodes: the request, and the token that it belongs to.
struct FleetPurge: Codable, Sendable {
    /// A random identifier, and that of the purge before: numbers alone can repeat after etcd was restored.
    let id: String
    var previous = ""
    var request: JSON
    /// The time of the request, which its condition `olderThanSeconds` refers to.
    var at: Timestamp
    /// Nil: the service needs no token.
    var owner: FleetTokenOwner?

    init(_ request: JSON, id: String, at now: Timestamp, by owner: TokenOwner?) {
        self.id = id
        self.request = request
        at = now
        self.owner = owner.map(FleetTokenOwner.init)
    }

    /// The token with its limits at the time of the request.
    var tokenOwner: TokenOwner? { owner?.owner }
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
