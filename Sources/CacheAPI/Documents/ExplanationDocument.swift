import CacheCore
package import CacheEngine

/// The `Explanation` schema.
package struct ExplanationDocument: Codable {
    /// The status and the length that a client would get.
    struct Response: Codable {
        var status: Int?
        var result: String
        var contentRange: String?
        var contentLength: Int64?
        var code: String?
    }

    /// The use of the cached response, and its reason.
    struct Freshness: Codable {
        var use: String
        var freshUntilAt: Timestamp?
        var ageSeconds: Double?
        var reason: String?
    }

    /// The upstream URL that would be used, or the reason why none can be.
    struct Source: Codable {
        var url: String?
        var mirrors: [String]
        var peers: [String]
        var skipReason: String?
    }

    struct Cached: Codable {
        /// The maximum number of `items`; `extents` is their total number.
        static let listedRanges = 100

        var bytes: Int64
        var extents: Int
        var items: [RangeDocument]
    }

    /// The upstream requests that the read would cause.
    struct Fetch: Codable {
        struct Request: Codable {
            var kind: String
            var range: RangeDocument?
            var sizedBy: String
        }

        var requests: Int?
        var bytes: Int64?
        var items: [Request]
    }

    /// The explanation of one file of a playlist.
    struct File: Codable {
        var startSeconds, endSeconds: Double
        var error: RecordedErrorDocument?
        var read: ExplanationDocument?
    }

    /// The sums over the files of a playlist.
    struct Total: Codable {
        var files, errors, requests: Int
        var bytes: Int64?
        var cachedBytes: Int64
    }

    var assetId: AssetID
    var key, origin: String
    var contentLength: Int64?
    var response: Response
    var freshness: Freshness
    var source: Source
    var wanted: [RangeDocument]
    var cached: Cached
    var fetch: Fetch
    var joinedFills: [String]
    var files: [File]?
    var total: Total?
}

extension ExplanationDocument {
    package init(_ explanation: Explanation) {
        let (freshness, source, cached) = (explanation.freshness, explanation.source, explanation.cached)
        self.init(
            assetId: explanation.assetID, key: explanation.key, origin: explanation.origin,
            contentLength: explanation.length, response: Response(explanation.answer),
            freshness: Freshness(
                use: freshness.use.rawValue, freshUntilAt: freshness.freshUntil,
                ageSeconds: freshness.age?.documentSeconds, reason: freshness.reason),
            source: Source(
                url: source.url, mirrors: source.mirrors, peers: source.peers, skipReason: source.whyNot?.message),
            wanted: explanation.wanted.map(RangeDocument.init),
            cached: Cached(
                bytes: cached.byteCount, extents: cached.runs.count,
                items: cached.runs.prefix(Cached.listedRanges).map(RangeDocument.init)),
            fetch: Fetch(explanation.forecast), joinedFills: explanation.joined.map { String($0) },
            files: explanation.files?.map(File.init), total: explanation.files.map { _ in Total(explanation.total) })
    }
}

extension ExplanationDocument.Response {
    fileprivate init(_ answer: Explanation.Answer) {
        self.init(
            status: answer.code?.contentStatus ?? answer.status, result: answer.requestClass.rawValue,
            contentRange: answer.contentRange, contentLength: answer.contentLength, code: answer.code?.name)
    }
}

extension ExplanationDocument.Fetch {
    fileprivate init(_ forecast: FillForecast) {
        self.init(
            requests: forecast.requestCount, bytes: forecast.requestedBytes,
            items: zip(forecast.requests, forecast.reasons).map { request, reason in
                Request(
                    kind: FillStatus.Kind(request).rawValue, range: request.range.map(RangeDocument.init),
                    sizedBy: reason.rawValue)
            })
    }
}

extension ExplanationDocument.File {
    fileprivate init(_ file: Explanation.File) {
        self.init(startSeconds: file.time.lowerBound.mediaTime, endSeconds: file.time.upperBound.mediaTime)
        switch file.result {
        case .success(let explanation): read = ExplanationDocument(explanation)
        case .failure(let failure): error = RecordedErrorDocument(failure)
        }
    }
}

extension ExplanationDocument.Total {
    fileprivate init(_ total: Explanation.Total) {
        self.init(
            files: total.files, errors: total.errors, requests: total.requests, bytes: total.bytes,
            cachedBytes: total.cachedBytes)
    }
}
