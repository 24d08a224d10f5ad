import CacheCore
package import CacheEngine

extension Explanation {
    /// As many runs on disk are listed one by one.
    package static let listedRuns = 100

    /// The `Explanation` schema.
    package var json: JSON {
        [
            "assetId": .string(assetID.description), "key": .string(key), "origin": .string(origin),
            "contentLength": .bytes(length), "answer": answer.json, "freshness": standing.json,
            "source": source.json,
            "wanted": .array(wanted.map(JSON.span)),
            "cached": [
                "bytes": .integer(cached.byteCount), "runs": .count(cached.runs.count),
                "items": .array(cached.runs.prefix(Self.listedRuns).map(JSON.run)),
            ],
            "fetch": forecast.json,
            "joins": .array(joined.map { .string(String($0)) }),
        ]
    }
}

extension Explanation.Source {
    var json: JSON {
        ["url": .text(url), "mirrors": .array(mirrors.map(JSON.string)), "whyNot": .text(whyNot?.message)]
    }
}

extension Explanation.Answer {
    var json: JSON {
        [
            "status": .optional(code?.contentStatus ?? status) { .count($0) }, "class": .string(requestClass.rawValue),
            "contentRange": .text(contentRange), "contentLength": .bytes(contentLength),
            "code": .text(code?.name),
        ]
    }
}

extension Explanation.Standing {
    var json: JSON {
        [
            "use": .string(use.rawValue), "freshUntilAt": .instant(freshUntil), "ageSeconds": .seconds(age),
            "reason": .text(reason),
        ]
    }
}

extension FillForecast {
    var json: JSON {
        [
            "requests": .optional(requestCount) { .count($0) }, "bytes": .bytes(requestedBytes),
            "items": .array(
                zip(requests, reasons).map { wish, reason in
                    [
                        "kind": .string(FillStatus.Kind(wish).rawValue), "range": .optional(wish.range, JSON.span),
                        "sizedBy": .string(reason.rawValue),
                    ]
                }),
        ]
    }
}
