package import CacheCore
package import CacheEngine

extension Explanation {
    /// The maximum number of cached ranges in the document; `extents` has their total number.
    static let listedRuns = 100

    /// The `Explanation` schema.
    package var json: JSON {
        [
            "assetId": .string(assetID.description), "key": .string(key), "origin": .string(origin),
            "contentLength": .bytes(length), "response": answer.json, "freshness": freshness.json,
            "source": source.json,
            "wanted": .array(wanted.map(JSON.span)),
            "cached": [
                "bytes": .integer(cached.byteCount), "extents": .count(cached.runs.count),
                "items": .array(cached.runs.prefix(Self.listedRuns).map(JSON.run)),
            ],
            "fetch": forecast.json,
            "joinedFills": .array(joined.map { .string(String($0)) }),
            "files": .optional(files) { .array($0.map(\.json)) }, "total": .optional(files) { _ in total.json },
        ]
    }
}

extension Explanation.File {
    /// The explanation of one file of a playlist.
    var json: JSON {
        var fields: [JSON.Member] = [
            .init("startSeconds", .mediaTime(time.lowerBound)), .init("endSeconds", .mediaTime(time.upperBound)),
        ]
        switch result {
        case .success(let explanation):
            fields += [.init("error", .null), .init("read", explanation.json)]
        case .failure(let error):
            fields += [.init("error", error.summary), .init("read", .null)]
        }
        return .object(fields)
    }
}

extension Explanation.Total {
    /// The sums over the files of a playlist.
    var json: JSON {
        [
            "files": .count(files), "errors": .count(errors), "requests": .count(requests), "bytes": .bytes(bytes),
            "cachedBytes": .integer(cachedBytes),
        ]
    }
}

extension Explanation.Source {
    /// The upstream URL that would be used, or the reason why none can be.
    var json: JSON {
        ["url": .text(url), "mirrors": .array(mirrors.map(JSON.string)), "skipReason": .text(whyNot?.message)]
    }
}

extension Explanation.Answer {
    /// The status and the length that a client would get.
    var json: JSON {
        [
            "status": .optional(code?.contentStatus ?? status) { .count($0) }, "result": .string(requestClass.rawValue),
            "contentRange": .text(contentRange), "contentLength": .bytes(contentLength),
            "code": .text(code?.name),
        ]
    }
}

extension Explanation.Freshness {
    /// The use of the cached response, and its reason.
    var json: JSON {
        [
            "use": .string(use.rawValue), "freshUntilAt": .instant(freshUntil), "ageSeconds": .seconds(age),
            "reason": .text(reason),
        ]
    }
}

extension FillForecast {
    /// The upstream requests that the read would cause.
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
