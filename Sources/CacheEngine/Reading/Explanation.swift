package import CacheCore

/// What a read would come to if it were made now: nothing of it has been done.
package struct Explanation: Sendable {
    /// How what is stored would be used.
    package enum Use: String, Sendable, CaseIterable {
        case fresh, stale, staleWhileRevalidate, confirm, unknown
    }

    /// Whether what is stored may be used, and why not.
    package struct Standing: Sendable {
        package var use: Use
        package var freshUntil: Timestamp?
        package var age: Duration?
        /// A sentence; nil where it is fresh.
        package var reason: String?

        package init(use: Use, freshUntil: Timestamp? = nil, age: Duration? = nil, reason: String? = nil) {
            self.use = use
            self.freshUntil = freshUntil
            self.age = age
            self.reason = reason
        }
    }

    /// The answer's head; nil is what only the upstream can say.
    package struct Answer: Sendable {
        package var code: CacheError.Code?
        package var status: Int?
        package var requestClass: ReadOutcome.Class
        package var contentRange: String?
        package var contentLength: Int64?

        package init(
            status: Int? = nil, requestClass: ReadOutcome.Class, contentRange: String? = nil,
            contentLength: Int64? = nil, code: CacheError.Code? = nil
        ) {
            self.status = status
            self.requestClass = requestClass
            self.contentRange = contentRange
            self.contentLength = contentLength
            self.code = code
        }
    }

    /// Where bytes are fetched from.
    package struct Source: Sendable {
        /// What would be asked first, without its query: the origin's own URL, or that of a mirror; nil: nobody may be.
        package var url: String?
        /// The origin's mirrors.
        package var mirrors: [String]
        /// Why the origin's own URL would not be asked; nil where it would.
        package var whyNot: CacheError?

        package init(url: String?, mirrors: [String] = [], whyNot: CacheError? = nil) {
            self.url = url
            self.mirrors = mirrors
            self.whyNot = whyNot
        }

        /// Why nothing can be fetched at all.
        package var refusal: CacheError? { url == nil ? whyNot : nil }
    }

    package var assetID: AssetID
    package var key: String
    package var origin: String
    package var source: Source
    package var standing: Standing
    package var answer: Answer
    /// The whole asset's length; nil where that is not known.
    package var length: Int64?
    /// The runs that the answer sends; to `Int64.max` where the asset's end is not known.
    package var wanted: [ByteRange]
    /// What of them is on disk.
    package var cached: ByteRangeSet
    package var forecast: FillForecast
    /// The fills under way that it would wait for, by number.
    package var joined: [UInt64]

    package init(
        assetID: AssetID, key: String, origin: String, source: Source, standing: Standing, answer: Answer,
        length: Int64? = nil, wanted: [ByteRange] = [], cached: ByteRangeSet = ByteRangeSet(),
        forecast: FillForecast = FillForecast(), joined: [UInt64] = []
    ) {
        self.assetID = assetID
        self.key = key
        self.origin = origin
        self.source = source
        self.standing = standing
        self.answer = answer
        self.length = length
        self.wanted = wanted
        self.cached = cached
        self.forecast = forecast
        self.joined = joined
    }
}
