package import CacheCore
package import CacheEngine

extension CacheEvent {
    /// The `Event` schema.
    package var json: JSON {
        .object(
            [
                .init("id", .integer(id)), .init("at", .instant(at)),
                .init("topic", .string(content.topic.rawValue)),
            ] + content.members)
    }
}

extension CacheEvent.Content {
    /// The type of the event and the members of that type.
    fileprivate var members: [JSON.Member] {
        switch self {
        case .job(let job, let isState):
            [.init("type", isState ? "state" : "progress"), .init("job", job.json)]
        case .fillStarted(let fill): [.init("type", "started"), .init("fill", .object(fill.members))]
        case .fillEnded(let fill, let end):
            [.init("type", "ended"), .init("fill", .object(fill.members + end.members))]
        case .evicted(let record): [.init("type", "evicted"), .init("eviction", record.json)]
        case .log(let isError, let message, let metadata):
            [
                .init("type", isError ? "error" : "warning"), .init("message", .string(message)),
                .init(
                    "metadata",
                    .object(metadata.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) })),
            ]
        case .readiness(let isReady, let reasons):
            [
                .init("type", "readiness"), .init("ready", .bool(isReady)),
                .init("reasons", .array(reasons.map(JSON.string))),
            ]
        case .second(let second): [.init("type", "second"), .init("second", second.json)]
        }
    }
}

extension FillEvent {
    fileprivate var members: [JSON.Member] {
        [
            .init("fillId", .string(String(number))), .init("assetId", .string(assetID.description)),
            .init("key", .string(key)), .init("origin", .string(origin)), .init("range", .optional(range, JSON.span)),
        ]
    }
}

extension FillEvent.End {
    fileprivate var members: [JSON.Member] {
        [
            .init("outcome", .string(outcome)), .init("bytes", .integer(bytes)), .init("seconds", .seconds(duration)),
            .init("error", .text(error?.name)),
        ]
    }

    private var outcome: String {
        switch error {
        case nil: "succeeded"
        case .cancelled: "cancelled"
        case .upstreamTimedOut: "timedOut"
        default: "failed"
        }
    }
}

extension LiveSecond {
    /// The `LiveSecond` schema.
    package var json: JSON {
        let classes = zip(ReadOutcome.Class.allCases, requests).map { JSON.Member($0.rawValue, .integer($1)) }
        return .object(
            [
                .init("at", .instant(at)), .init("clientBytesFromCache", .integer(clientBytesFromCache)),
                .init("clientBytesFromUpstream", .integer(clientBytesFromUpstream)),
                .init("upstreamBytes", .integer(upstreamBytes)),
                .init("requests", .object([.init("total", .integer(hitRatios.requests))] + classes)),
            ] + hitRatios.members + [
                .init("lastMinute", .object(lastMinute.members)),
                .init("last15Minutes", .object(last15Minutes.members)),
                .init(
                    "firstByteSeconds",
                    .optional(firstByte) { times in
                        ["p50": .quantile(times, 0.5), "p95": .quantile(times, 0.95), "p99": .quantile(times, 0.99)]
                    }),
                .init("activeReaders", .integer(activeReaders)), .init("activeFills", .count(activeFills)),
            ])
    }
}

extension HitRatios {
    /// The members of the `HitRatios` schema.
    fileprivate var members: [JSON.Member] {
        [
            .init("requestHitRatio", .optional(request, JSON.number)),
            .init("byteHitRatio", .optional(byte, JSON.number)),
        ]
    }
}

extension JSON {
    /// A quantile in seconds, rounded to microseconds; null without values.
    fileprivate static func quantile(_ histogram: HistogramSnapshot, _ q: Double) -> JSON {
        .optional(histogram.quantile(q)) { .number(($0 * 1e6).rounded() / 1e6) }
    }
}
