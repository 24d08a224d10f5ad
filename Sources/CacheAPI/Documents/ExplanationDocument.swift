package import CacheCore
package import CacheEngine

/// The `Explanation` schema.
package struct ExplanationDocument: Codable {
    /// The status and the length that a client would get.
    package struct Response: Codable {
        package var status: Int?
        package var result: String
        package var contentRange: String?
        package var contentLength: Int64?
        package var code: String?
    }

    /// The use of the cached response, and its reason.
    package struct Freshness: Codable {
        package var use: String
        package var freshUntilAt: Timestamp?
        package var ageSeconds: Double?
        package var reason: String?
    }

    /// The upstream URL that would be used, or the reason why none can be.
    package struct Source: Codable {
        package var url: String?
        package var mirrors: [String]
        package var peers: [String]
        package var skipReason: String?
    }

    package struct Cached: Codable {
        /// The maximum number of `items`; `extents` is their total number.
        static let listedRanges = 100

        package var bytes: Int64
        package var extents: Int
        package var items: [RangeDocument]
    }

    /// The upstream requests that the read would cause.
    package struct Fetch: Codable {
        package struct Request: Codable {
            package var kind: String
            package var range: RangeDocument?
            package var sizedBy: String
        }

        package var requests: Int?
        package var bytes: Int64?
        package var items: [Request]
    }

    /// The explanation of one file of a playlist.
    package struct File: Codable {
        package var startSeconds, endSeconds: Double
        package var error: RecordedErrorDocument?
        package var read: ExplanationDocument?
    }

    /// The sums over the files of a playlist.
    package struct Total: Codable {
        package var files, errors, requests: Int
        package var bytes: Int64?
        package var cachedBytes: Int64
    }

    package var assetId: AssetID
    package var key, origin: String
    package var contentLength: Int64?
    package var response: Response
    package var freshness: Freshness
    package var source: Source
    package var wanted: [RangeDocument]
    package var cached: Cached
    package var fetch: Fetch
    package var joinedFills: [String]
    package var files: [File]?
    package var total: Total?
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
