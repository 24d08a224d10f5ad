package import CacheCore
package import CacheEngine
package import ReaderAccess

extension StatsSnapshot {
    /// The `Stats` schema without readers.
    package var json: JSON { json(readers: []) }

    /// The `Stats` schema.
    package func json(readers: [ReaderUsage]) -> JSON {
        var document = JSON.object(
            StatsReport.document.members(of: StatsReport(self)) + [
                .init(
                    "origins",
                    .array(
                        origins.map { name, figures in
                            .object(
                                [.init("origin", .string(name))] + figures.members + [
                                    .init("circuit", circuit(of: name)),
                                    .init("credentials", .optional(credentials[name], \.json)),
                                ])
                        })),
                .init("readers", .array(readers.map { $0.json(pricePerGigabyte: pricePerGigabyte) })),
                .init(
                    "failingServers",
                    .array(failingServers.prefix(Self.listedServers).map { .object($0.members()) })),
            ])
        document.insert(.array(store.quotas.map(\.json)), at: ["store", "quotas"])
        document.insert(.optional(scrub, \.json), at: ["integrity", "scrub"])
        return document
    }

    /// The maximum number of failing servers in the document.
    static let listedServers = 100

    /// The `OriginCircuit` schema; null for an origin without a circuit breaker. The first circuit is that of the base
    /// URL, the others are those of the mirrors.
    private func circuit(of origin: String) -> JSON {
        guard let circuits = circuits[origin], let base = circuits.first else { return .null }
        let mirrors = circuits.dropFirst().map { JSON.object($0.members()) }
        return .object(base.members() + [.init("mirrors", .array(mirrors))])
    }
}

extension StatsSnapshot.CredentialFigures {
    /// The `OriginCredentials` schema.
    fileprivate var json: JSON {
        [
            "kind": .string(kind), "expiresAt": .optional(expiresAt, JSON.instant), "stale": .bool(isStale),
            "refreshedAt": .optional(refreshedAt, JSON.instant), "refreshes": .integer(refreshes),
            "failures": .integer(failures), "error": .optional(error, JSON.string),
        ]
    }
}

extension CircuitFigures {
    /// The members of the `Circuit` schema. The message of the last failure is for administrators.
    package func members(withMessage: Bool = false) -> [JSON.Member] {
        [
            .init("url", .string(address)), .init("state", .string(state.rawValue)),
            .init("failuresInARow", .count(failuresInARow)), .init("opensTotal", .integer(opensTotal)),
            .init("probeInSeconds", .seconds(pause)),
            .init("lastFailure", failures.json(since: sinceFailure, withMessage: withMessage)),
        ]
    }
}

extension AddressFailures {
    /// The `LastFailure` schema; null without a failure. `since`: the time since the last one.
    package func json(since: Duration?, withMessage: Bool) -> JSON {
        guard let last else { return .null }
        return [
            "cause": .string(last.cause), "status": .optional(last.status, JSON.count),
            "secondsAgo": .seconds(since), "count": .integer(counts.values.reduce(0, +)),
            "message": withMessage ? .string(last.message) : .null,
        ]
    }
}

extension TrafficFigures {
    private static let document = FigureDocument(Figure<TrafficFigures>.all)

    /// The members that the documents of origins and of steps have in common.
    fileprivate var members: [JSON.Member] { Self.document.members(of: self) }
}

extension HistoryStep {
    /// The `HistoryStep` schema.
    package var json: JSON { .object([.init("at", .instant(at))] + figures.members) }
}

extension TopAsset {
    /// The `TopAsset` schema.
    package var json: JSON {
        [
            "assetId": .string(assetID.description), "key": .string(key), "servedBytes": .integer(servedBytes),
            "servedFromCacheBytes": .integer(servedFromCacheBytes), "requests": .integer(requests),
            "byteHitRatio": .optional(byteHitRatio, JSON.number),
        ]
    }
}
