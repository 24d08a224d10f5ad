package import CacheCore
package import CacheEngine

extension ProbeReport {
    /// The `ProbeReport` schema.
    package var json: JSON {
        [
            "outcome": "succeeded", "assetId": .string(assetID.description), "key": .string(key), "url": .string(url),
            "finalUrl": .string(finalURL), "contentLength": .bytes(generation.length),
            "contentType": .text(generation.contentType),
            "contentTypeFrom": .string(generation.contentTypeFrom.rawValue), "uti": .text(uti),
            "acceptsRanges": .optional(generation.acceptsRanges, JSON.bool),
            "etag": .text(generation.validators.entityTag?.description),
            "lastModified": .text(generation.validators.lastModified),
            "freshUntilAt": .instant(generation.freshUntil), "cachedBytes": .integer(cachedBytes),
            "method": .string(method.rawValue), "upstreamStatus": .optional(upstreamStatus, JSON.count),
            "redirects": .count(redirects), "timings": timings.json,
        ]
    }
}

extension TransferTimings {
    /// The `Timings` schema.
    package var json: JSON {
        [
            "nameLookupSeconds": .seconds(nameLookup), "connectSeconds": .seconds(connect), "tlsSeconds": .seconds(tls),
            "firstByteSeconds": .seconds(firstByte), "totalSeconds": .seconds(total),
        ]
    }
}

extension ProbeFailure {
    /// The members that a failed probe adds to its problem document.
    package var members: [JSON.Member] {
        var (outcome, status, timeout) = ("failed", JSON.null, JSON.null)
        switch error.code {
        case .upstreamRefused(let code, _): status = .count(code)
        case .upstreamTimedOut(let which):
            outcome = "timedOut"
            timeout = .string(which.rawValue)
        case .cancelled: outcome = "cancelled"
        default: break
        }
        return [
            .init("outcome", .string(outcome)), .init("upstreamStatus", status), .init("timeout", timeout),
            .init("timings", timings.json),
        ]
    }
}

/// The body of `POST /v1/probe`: one asset, or a list.
package struct ProbeRequest: Sendable {
    /// The members of the schema.
    package static let keys = AssetReference.keys + ["timeoutSeconds", "refresh", "items"]
    /// The members of an item.
    static let itemKeys = AssetReference.keys + ["timeoutSeconds", "refresh"]
    /// The maximum number of items of one request.
    static let itemLimit = 100

    /// One asset to probe.
    package struct Item: Sendable {
        package var reference: AssetReference
        package var timeout: Duration
        /// Whether the upstream is asked even if the cached metadata is fresh.
        package var refresh: Bool
    }

    /// At least one.
    package var items: [Item]
    /// Whether the response is a list, even for one item.
    var isMany: Bool

    /// Reads the request. Beside `items`, `timeoutSeconds` and `refresh` are the defaults of all items.
    package init(_ json: JSON) throws(CacheError) {
        let fields = try JSONFields(json, accepting: Self.keys)
        guard fields.has("items") else {
            items = [try Self.item(fields)]
            isMany = false
            return
        }
        for key in AssetReference.keys where fields.has(key) {
            throw fields.invalid(key, "This field is not allowed beside items; put it into the items.")
        }
        let timeout = try Self.timeout(fields)
        let refresh = try fields.bool("refresh")
        items = []
        isMany = true
        for (index, entry) in (try fields.array("items", atMost: Self.itemLimit) ?? []).enumerated() {
            let inner = try JSONFields(entry, at: "items[\(index)]", accepting: Self.itemKeys)
            var item = try Self.item(inner)
            if !inner.has("timeoutSeconds"), let timeout { item.timeout = timeout }
            if !inner.has("refresh"), let refresh { item.refresh = refresh }
            items.append(item)
        }
        guard !items.isEmpty else { throw fields.invalid("items", "At least one item is expected here.") }
    }

    /// Reads one asset. The default time limit is 5 s.
    private static func item(_ fields: JSONFields) throws(CacheError) -> Item {
        Item(
            reference: try AssetReference(fields), timeout: try timeout(fields) ?? .seconds(5),
            refresh: try fields.bool("refresh") ?? false)
    }

    /// Reads `timeoutSeconds`, at most 300; nil without the member.
    private static func timeout(_ fields: JSONFields) throws(CacheError) -> Duration? {
        try fields.number("timeoutSeconds", in: 0.001...300).map { .seconds($0) }
    }
}
