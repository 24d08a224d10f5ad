/// The metadata of one generation of an asset: the representation as its upstream described it.
package struct Generation: Hashable, Sendable {
    /// The origin of `contentType`: the `Content-Type` field or the extension of the path.
    package enum TypeSource: String, Hashable, Sendable { case header, `extension` }

    /// Starts at 1 and increases with every change of the representation upstream.
    package var number: Int64
    /// The length in bytes; nil: not known yet.
    package var length: Int64?
    package var contentType: String?
    package var contentTypeFrom: TypeSource
    /// The tag and date of the representation, for conditional requests.
    package var validators: Validators
    /// True: a 206 was received. False: the upstream ignored a range. Nil: unknown.
    package var acceptsRanges: Bool?
    /// Stored end-to-end fields that are sent with the content (`Cache-Control`, `Content-Disposition`, …).
    package var headers: HeaderList
    /// Fields that belong to the response that brought the generation. They are sent only with responses for which it
    /// was requested, and are not stored.
    var firstHeaders: HeaderList = [:]
    /// The time of the response, or of its last validation.
    package var receivedAt: Timestamp
    /// The age of the response at `receivedAt` (RFC 9111 §4.2.3).
    package var initialAge: Duration
    /// Fresh until then; nil: must be validated before every use.
    package var freshUntil: Timestamp?
    /// The heuristic lifetime of a playlist whose text has not been read yet; see ``apply(updateInterval:)``. It is not stored.
    package private(set) var playlistGuess: Freshness.Guess?
    /// Whether a shared cache may store it (RFC 9111 §3).
    package var isStorable: Bool
    /// The status of a response with the whole: 200, or 203 if a proxy has transformed it (RFC 9110 §15.3.4).
    package var status = 200
    /// Nil: a 200, 203 or 206 in identity coding. Otherwise the status of a response that is passed on unchanged for
    /// every range and condition, and never stored.
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

    /// Sets the lifetime and the age of a response of `receivedAt`. Returns the result.
    ///
    /// A playlist that states no lifetime is fresh for half a second at most, until ``apply(updateInterval:)`` is called for its text.
    func lasting(_ freshness: Freshness, path: String) -> Generation {
        var lasting = self
        (lasting.initialAge, lasting.freshUntil) = (freshness.initialAge, freshness.freshUntil)
        lasting.playlistGuess = nil
        guard let guess = freshness.guess, MediaFormat.isPlaylist(contentType: contentType, path: path) else {
            return lasting
        }
        lasting.playlistGuess = guess
        lasting.freshUntil = lasting.end(of: Self.leastUpdateInterval, limit: guess.end ?? guess.limit)
        return lasting
    }

    /// Ends the provisional lifetime of a playlist. A live one is fresh until its next update, any other text for the
    /// heuristic lifetime.
    ///
    /// - Parameter updateInterval: the time after which the text has changed; nil: it is unknown, or it does not change.
    package mutating func apply(updateInterval: Duration?) {
        guard let guess = playlistGuess else { return }
        playlistGuess = nil
        freshUntil = updateInterval.map { end(of: $0, limit: guess.limit) } ?? guess.end
    }

    /// The shortest lifetime of a live playlist, and the one of a playlist whose text has not been read.
    package static let leastUpdateInterval = Duration.milliseconds(500)

    /// The end of a lifetime of a playlist. The age below a second is not counted: `Date` has whole seconds.
    private func end(of lifetime: Duration, limit: Timestamp?) -> Timestamp {
        Freshness.end(of: lifetime, age: max(.zero, initialAge - .seconds(1)), limit: limit, now: receivedAt)
    }

    /// Whether it may be used at `now` without validation.
    package func isFresh(at now: Timestamp) -> Bool { freshUntil.map { now < $0 } ?? false }

    /// The age of a response at `now` (RFC 9111 §4.2.3).
    package func age(at now: Timestamp) -> Duration { initialAge + max(.zero, now.since(receivedAt)) }
}

/// An asset as stored in the catalog.
package struct AssetRecord: Hashable, Sendable {
    package var id: AssetID
    /// The cache key: `/o/{origin}/{path}?{query}`, an absolute URL, or a key given by the caller.
    package var key: String
    /// The name of the mounted origin, or `Origin.absoluteName`.
    package var origin: String
    /// The last upstream URL. It may be signed, so its query is kept in memory only.
    package var url: String
    package var generation: Generation
    package var createdAt: Timestamp
    package var lastAccessAt: Timestamp
    package var hits: Int64
    package var isPinned: Bool
    /// The end of the pin; nil: until it is unpinned.
    package var pinnedUntil: Timestamp?
    package var tags: [String]
    /// The administrator's freshness lifetime for this asset, which overrides the origin; nil: none.
    package var ttl: Duration?
    /// When stored bytes are verified against their checksums; nil: as the origin's settings say.
    package var verify: Verification?
    /// The request fields that selected this variant, if the upstream has several (RFC 9111 §4.1). They are sent with
    /// every upstream request for it.
    package var variant: HeaderList

    /// The length of the suffix that distinguishes a variant's key: a space and 64 bits of SHA-256 in hexadecimal
    /// digits.
    package static let variantMarkBytes = 17

    /// Whether a text is a valid tag: 1 to 128 Unicode scalars, and no NUL.
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
