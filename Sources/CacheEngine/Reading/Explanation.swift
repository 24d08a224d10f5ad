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
}
