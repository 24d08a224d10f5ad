/// What is known of one generation of an asset: the representation's metadata, as its upstream gave it.
package struct Generation: Hashable, Sendable {
    package enum TypeSource: String, Hashable, Sendable { case header, `extension` }

    /// Counts up from 1 with every change of the upstream's bytes.
    package var number: Int64
    /// Nil while the end is not known.
    package var length: Int64?
    package var contentType: String?
    package var contentTypeFrom: TypeSource
    package var validators: Validators
    /// True: a 206 was seen. False: a range was ignored. Nil: not known.
    package var acceptsRanges: Bool?
    /// End-to-end header fields that are passed on with the content (`Cache-Control`, `Content-Disposition`, …).
    package var headers: HeaderList
    /// Fields of the response that brought it, and of no later one.
    package var firstHeaders: HeaderList = [:]
    /// When the response came, or was last confirmed.
    package var receivedAt: Timestamp
    /// The response's age when it came (RFC 9111 §4.2.3).
    package var initialAge: Duration
    /// Until when it may be used without asking the upstream again; nil: must be confirmed before each use.
    package var freshUntil: Timestamp?
    /// Whether a shared cache may keep it (RFC 9111 §3).
    package var isStorable: Bool
    /// Nil: a 200 or 206 in identity coding. Else the status of a response that is passed on as it came, whatever range or
    /// condition was requested, and never stored.
    package var passedStatus: Int?

    package init(
        number: Int64 = 1, length: Int64? = nil, contentType: String? = nil, contentTypeFrom: TypeSource = .header,
        validators: Validators = Validators(), acceptsRanges: Bool? = nil, headers: HeaderList = [:],
        receivedAt: Timestamp, initialAge: Duration = .zero, freshUntil: Timestamp? = nil, isStorable: Bool = true
    ) {
        self.number = number
        self.length = length
        self.contentType = contentType
        self.contentTypeFrom = contentTypeFrom
        self.validators = validators
        self.acceptsRanges = acceptsRanges
        self.headers = headers
        self.receivedAt = receivedAt
        self.initialAge = initialAge
        self.freshUntil = freshUntil
        self.isStorable = isStorable
    }

    package func isFresh(at now: Timestamp) -> Bool { freshUntil.map { now < $0 } ?? false }

    /// RFC 9111 §4.2.3: the age of a response served now.
    package func age(at now: Timestamp) -> Duration { initialAge + max(.zero, now.since(receivedAt)) }
}

/// An asset as the catalog keeps it.
package struct AssetRecord: Hashable, Sendable {
    package var id: AssetID
    /// What names it: `/o/{origin}/{path}?{query}`, an absolute URL, or a key the caller gave.
    package var key: String
    /// The mounted origin's name, or `Origin.absoluteName`.
    package var origin: String
    /// Where it was last fetched from; may be a signed URL, so its query is kept in memory only.
    package var url: String
    package var generation: Generation
    package var createdAt: Timestamp
    package var lastAccessAt: Timestamp
    package var hits: Int64
    package var isPinned: Bool
    /// Until when; nil: until it is unpinned.
    package var pinnedUntil: Timestamp?
    package var tags: [String]
    /// The administrator's own lifetime for it, over what the origin says.
    package var ttl: Duration?
    /// When its bytes are compared with their checksums; nil: as its origin says.
    package var verify: Verification?
    /// The reader's fields by which this representation was chosen, where the upstream has several (RFC 9111 §4.1); sent
    /// with every request for it.
    package var variant: HeaderList

    /// The characters behind the key of a variant's asset: a blank and 64 bits of SHA-256.
    package static let variantMarkBytes = 17

    package static func isTag(_ text: String) -> Bool {
        (1...128).contains(text.unicodeScalars.count) && !text.utf8.contains(0)
    }

    package init(
        id: AssetID, key: String, origin: String, url: String, generation: Generation, createdAt: Timestamp,
        lastAccessAt: Timestamp, hits: Int64 = 0, isPinned: Bool = false, pinnedUntil: Timestamp? = nil,
        tags: [String] = [], ttl: Duration? = nil, verify: Verification? = nil, variant: HeaderList = [:]
    ) {
        self.id = id
        self.key = key
        self.origin = origin
        self.url = url
        self.generation = generation
        self.createdAt = createdAt
        self.lastAccessAt = lastAccessAt
        self.hits = hits
        self.isPinned = isPinned
        self.pinnedUntil = pinnedUntil
        self.tags = tags
        self.ttl = ttl
        self.verify = verify
        self.variant = variant
    }
}
