package import CacheCore

/// The predicted result of a read, for `GET /v1/explain`: nothing of it has been executed.
package struct Explanation: Sendable {
    /// How the stored response would be used.
    package enum Use: String, Sendable, CaseIterable {
        case fresh, stale, staleWhileRevalidate, confirm, unknown
    }

    /// Whether the stored response may be used, and the reason if not.
    package struct Freshness: Sendable {
        package var use: Use
        /// The end of the freshness lifetime; nil if there is none.
        package var freshUntil: Timestamp?
        /// The age of the stored response; nil if there is none.
        package var age: Duration?
        /// A sentence; nil if the response is fresh.
        package var reason: String?
    }

    /// The predicted response head. Nil fields are known only to the upstream.
    package struct Answer: Sendable {
        package var status: Int?
        package var requestClass: ReadOutcome.Class
        package var contentRange: String?
        package var contentLength: Int64?
        /// The error code of the failure; nil if content is served.
        package var code: CacheError.Code?
    }

    /// The addresses that bytes are fetched from.
    package struct Source: Sendable {
        /// The first address to be requested, without its query: the origin's own URL or a mirror. Nil if none may be
        /// requested.
        package var url: String?
        /// The URLs of the origin's mirrors, without queries.
        package var mirrors: [String] = []
        /// The base URLs of other nodes that would be asked first.
        package var peers: [String] = []
        /// The reason why the origin's own URL would not be requested; nil if it would be.
        package var whyNot: CacheError?

        /// The reason why nothing can be fetched at all; nil if an address may be requested.
        package var refusal: CacheError? { url == nil ? whyNot : nil }
    }

    package var assetID: AssetID
    package var key: String
    package var origin: String
    package var source: Source
    package var freshness: Freshness
    package var answer: Answer
    /// The length of the complete asset in bytes; nil if unknown.
    package var length: Int64?
    /// The runs of the asset that the response contains; the last one ends at `Int64.max` if the length is unknown.
    package var wanted: [ByteRange] = []
    /// The part of `wanted` that is on disk.
    package var cached = ByteRangeSet()
    /// The upstream requests that the read would cause.
    package var forecast = FillForecast()
    /// The numbers of the fills in flight that the read would wait for.
    package var joined: [UInt64] = []
    /// The files of a playlist that a span of time needs, the playlist itself excluded; nil: the read is one of bytes.
    package var files: [File]?

    /// The read of a file of a playlist.
    package struct File: Sendable {
        /// The presentation times that the file is needed for, in seconds.
        package var time: Range<Double>
        package var result: Result<Explanation, CacheError>
    }

    /// Sums over the files of a playlist.
    package struct Total: Sendable {
        package var files = 0
        /// The number of files that cannot be explained.
        package var errors = 0
        /// The upstream requests; one for a file of unknown length.
        package var requests = 0
        /// The bytes of these requests; nil if one of them is for a file of unknown length.
        package var bytes: Int64? = 0
        package var cachedBytes: Int64 = 0
    }

    /// The sums over ``files``.
    package var total: Total {
        var total = Total()
        for file in files ?? [] {
            total.files += 1
            guard case .success(let read) = file.result else {
                total.errors += 1
                continue
            }
            total.requests += read.forecast.requestCount ?? max(1, read.forecast.requests.count)
            total.bytes = total.bytes.flatMap { sum in read.forecast.requestedBytes.map { sum + $0 } }
            total.cachedBytes += read.cached.byteCount
        }
        return total
    }
}
