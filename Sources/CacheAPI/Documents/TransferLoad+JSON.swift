package import CacheCore
import CacheEngine

extension TransferLoad {
    /// The `Workers` schema.
    package var json: JSON {
        let origins = Set(activeByOrigin.keys).union(queuedByOrigin.keys).sorted()
        return [
            "active": .count(active), "queued": .count(queued), "paused": .count(paused),
            "connections": connections,
            "workers": .array(
                workers.enumerated().map { index, worker in
                    [
                        "worker": .count(index), "active": .count(worker.active), "ended": .count(worker.ended),
                        "openedConnections": .count(worker.openedConnections),
                        "reusedConnections": .count(worker.reusedConnections),
                    ]
                }),
            "origins": .array(
                origins.map { name in
                    [
                        "origin": .string(name), "active": .count(activeByOrigin[name] ?? 0),
                        "queued": .count(queuedByOrigin[name] ?? 0),
                    ]
                }),
        ]
    }

    private static let document = FigureDocument(Figure<TransferLoad>.connections)

    /// The number of requests on new and on reused connections.
    var connections: JSON { .object(Self.document.members(of: self)) }
}
