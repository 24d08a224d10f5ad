package import CacheCore
package import CacheEngine
package import ReaderAccess

extension TrafficFigures {
    /// The members that the totals and each origin have in common.
    var members: [JSON.Member] {
        let requests: [JSON.Member] =
            [.init("total", .integer(requestsTotal))]
            + ReadOutcome.Class.allCases.map { .init($0.rawValue, .integer(count($0))) }
        let bytes: JSON = [
            "served": .integer(servedBytes), "servedFromCache": .integer(servedFromCacheBytes),
            "servedAfterFill": .integer(servedAfterFillBytes), "requested": .integer(requestedBytes),
            "upstream": .integer(upstreamBytes),
            "upstreamPrefetch": .integer(upstreamPrefetchBytes), "refetched": .integer(refetchedBytes),
        ]
        return [
            .init("requests", .object(requests)), .init("clientAborted", .integer(clientAborted)),
            .init("bytes", bytes), .init("requestHitRatio", .number(requestHitRatio)),
            .init("byteHitRatio", .number(byteHitRatio)), .init("upstreamRatio", .number(upstreamRatio)),
        ]
    }

    /// The figures of fills: outcomes, retries, hedged requests, upstream requests and waits.
    var fills: [JSON.Member] {
        [
            .init("succeeded", .integer(fillsSucceeded)), .init("failed", .integer(fillsFailed)),
            .init("timedOut", .integer(fillsTimedOut)), .init("cancelled", .integer(fillsCancelled)),
            .init("retried", .integer(fillsRetried)), .init("hedged", .integer(fillsHedged)),
            .init("hedgesWon", .integer(hedgesWon)), .init("requests", .integer(upstreamRequests)),
            .init("prefetchRequests", .integer(upstreamPrefetchRequests)),
            .init("requestsPerClientRequest", .number(requestsPerClientRequest)),
            .init("bytesPerRequest", .number(bytesPerUpstreamRequest)),
            .init("waits", .object(Self.waitOutcomes.map { .init($0.name, .integer(waits[$0.name] ?? 0)) })),
        ]
    }
}

extension StatsSnapshot {
    /// The `Stats` schema without readers.
    package var json: JSON { json(readers: []) }

    /// The `Stats` schema.
    package func json(readers: [ReaderUsage]) -> JSON {
        let running: [JSON.Member] = [
            .init("active", .count(load.active)), .init("queued", .count(load.queued)),
            .init("paused", .count(load.paused)),
        ]
        let jobs = JobState.ofJobs.map { JSON.Member($0.rawValue, .integer(self.jobs[$0] ?? 0)) }
        let origins = self.origins.map { name, figures in
            JSON.object(
                [.init("origin", .string(name))] + figures.members + [
                    .init("fills", .object(figures.fills)), .init("circuit", circuit(of: name)),
                    .init("credentials", .optional(credentials[name], \.json)),
                ])
        }
        return .object(
            [.init("startedAt", .instant(startedAt)), .init("uptimeSeconds", .seconds(uptime))] + all.members + [
                .init("pricePerGigabyte", .optional(pricePerGigabyte, JSON.number)), .init("store", store.json),
                .init("fills", .object(running + all.fills)), .init("jobs", .object(jobs)),
                .init("evictions", ["count": .integer(evictions), "bytes": .integer(evictedBytes)]),
                .init("integrity", integrity.json(scrub)),
                .init("connections", load.connections), .init("load", counter.json), .init("origins", .array(origins)),
                .init("readers", .array(readers.map { $0.json(pricePerGigabyte: pricePerGigabyte) })),
                .init(
                    "failingServers",
                    .array(failingServers.prefix(Self.listedServers).map { .object($0.members()) })),
            ])
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

extension IntegrityFigures {
    /// The `integrity` member, with the running or last scrub.
    fileprivate func json(_ scrub: ScrubReport?) -> JSON {
        [
            "badBlocks": .integer(badBlocks), "badBytes": .integer(badBytes), "badDigests": .integer(badDigests),
            "damagedRows": .integer(damagedRows), "scrubs": .integer(scrubs),
            "scrubbedBytes": .integer(scrubbedBytes), "scrub": .optional(scrub, \.json),
        ]
    }
}

extension AdmissionStats {
    /// The `load` member.
    fileprivate var json: JSON { ["connections": connections.json, "reads": reads.json] }
}

extension AdmissionStats.Load {
    /// The use of one admission limit.
    fileprivate var json: JSON {
        ["active": .count(active), "limit": .count(limit), "refused": .count(refused)]
    }
}

extension StatsSnapshot.StoreFigures {
    /// The `store` member.
    var json: JSON {
        [
            "damaged": .bool(isDamaged), "assets": .integer(assets), "extents": .integer(extents),
            "cachedBytes": .integer(cachedBytes),
            "diskBytes": .integer(diskBytes), "capacityBytes": .bytes(capacityBytes),
            "freeDiskBytes": .integer(freeDiskBytes), "uncommittedBytes": .integer(losses.bytes),
            "uncommittedSeconds": .seconds(losses.age), "longestUncommittedSeconds": .seconds(losses.longest),
            "quotas": .array(quotas.map(\.json)),
        ]
    }
}

extension HistoryStep {
    /// The `HistoryStep` schema.
    package var json: JSON {
        .object(
            [.init("at", .instant(at))] + figures.members + [.init("fills", .object(figures.fills))])
    }
}

extension TopAsset {
    /// The `TopAsset` schema.
    package var json: JSON {
        [
            "assetId": .string(assetID.description), "key": .string(key), "servedBytes": .integer(servedBytes),
            "servedFromCacheBytes": .integer(servedFromCacheBytes), "requests": .integer(requests),
        ]
    }
}
