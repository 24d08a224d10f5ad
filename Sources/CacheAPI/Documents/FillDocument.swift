package import CacheCore
package import CacheEngine

/// The `Fill` schema.
package struct FillDocument: Codable {
    package var fillId: String
    package var assetId: AssetID
    package var key, origin, kind: String
    package var range: RangeDocument?
    package var positionBytes, bytesPerSecond: Int64
    /// Received bytes ÷ length of the range; nil if its end is unknown.
    package var progressRatio: Double?
    package var readers: Int
    package var state, priority: String
    package var attempt: Int
    package var isHedged: Bool
    /// The node of the fleet that is asked in place of the upstream; nil: the upstream.
    package var peer: String?
    package var upstreamAddress, `protocol`: String?
    package var startedAt: Timestamp
}

extension FillDocument {
    package init(_ fill: FillStatus) {
        let progress = fill.progress
        self.init(
            fillId: String(fill.number), assetId: fill.assetID, key: fill.key, origin: fill.origin,
            kind: fill.kind.rawValue, range: fill.range.map(RangeDocument.init), positionBytes: fill.position,
            bytesPerSecond: progress.bytesPerSecond,
            progressRatio: fill.range.flatMap { range in
                range.upperBound == .max ? nil : (fill.position - range.lowerBound).ratio(to: range.length)
            }, readers: fill.readers, state: progress.stage.rawValue,
            priority: progress.priority.name, attempt: progress.attempt, isHedged: progress.isHedged,
            peer: progress.peer,
            upstreamAddress: progress.address, protocol: progress.httpVersion.map { "HTTP/" + $0 },
            startedAt: progress.startedAt)
    }
}

extension TransferPriority {
    /// The priority's name in the API.
    package var name: String {
        switch self {
        case .live: "live"
        case .readAhead: "readAhead"
        case .prefetch: "prefetch"
        }
    }
}

/// The `Workers` schema.
package struct WorkersDocument: Encodable {
    struct Worker: Encodable {
        var worker, active, ended, openedConnections, reusedConnections: Int
    }

    struct Origin: Encodable {
        var origin: String
        var active, queued: Int
    }

    var active, queued, paused: Int
    /// The requests on new and on reused connections.
    var connections: FigureDocument<TransferLoad>.Values
    var workers: [Worker]
    var origins: [Origin]
}

extension WorkersDocument {
    private static let connections = FigureDocument(Figure<TransferLoad>.connections)

    package init(_ load: TransferLoad) {
        let origins = Set(load.activeByOrigin.keys).union(load.queuedByOrigin.keys).sorted()
        self.init(
            active: load.active, queued: load.queued, paused: load.paused, connections: Self.connections(of: load),
            workers: load.workers.enumerated().map { index, worker in
                Worker(
                    worker: index, active: worker.active, ended: worker.ended,
                    openedConnections: worker.openedConnections, reusedConnections: worker.reusedConnections)
            },
            origins: origins.map { name in
                Origin(
                    origin: name, active: load.activeByOrigin[name] ?? 0, queued: load.queuedByOrigin[name] ?? 0)
            })
    }
}
