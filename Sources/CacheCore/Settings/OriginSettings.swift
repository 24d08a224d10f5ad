/// A named upstream base URL with its settings, mounted at `/o/{name}/…`.
package struct Origin: Hashable, Sendable {
    package var name: String
    package var settings: OriginSettings

    package init(name: String, settings: OriginSettings) {
        self.name = name
        self.settings = settings
    }

    /// The name that counts reads of absolute URLs; no mounted origin can have it.
    package static let absoluteName = "(url)"

    /// Whether `name` can be mounted: 1 to 64 of `a`–`z`, `0`–`9`, `.`, `_` and `-`, the first alphanumeric.
    package static func isValid(name: String) -> Bool {
        func isAlphanumeric(_ byte: UInt8) -> Bool { (97...122).contains(byte) || (48...57).contains(byte) }
        guard let first = name.utf8.first, name.utf8.count <= 64, isAlphanumeric(first) else { return false }
        return name.utf8.allSatisfy { isAlphanumeric($0) || $0 == 45 || $0 == 46 || $0 == 95 }
    }
}

/// The settings of an origin. `validate` checks their limits.
package struct OriginSettings: Hashable, Sendable {
    /// How long a response may be used without revalidation.
    package enum Freshness: Hashable, Sendable {
        /// According to the response's own header fields. Without such fields: a tenth of the time since
        /// `Last-Modified`, at most one day (heuristic freshness, RFC 9111 §4.2.2).
        case respect
        /// According to the response's own header fields. Without such fields, each use revalidates.
        case explicit
        /// This lifetime, regardless of the header fields.
        case ttl(Duration)
    }

    /// The part of the query that belongs to the key.
    package enum KeyQuery: Hashable, Sendable {
        case all
        case none
        /// The parameters with these names.
        case include([String])
        /// All parameters except those with these names.
        case exclude([String])

        /// The names of a list form; nil for the other forms.
        var names: [String]? {
            switch self {
            case .all, .none: nil
            case .include(let names), .exclude(let names): names
            }
        }
    }

    /// The use of the query parameter `CMCD`, with which players report their state.
    package enum CMCD: String, Hashable, Sendable, CaseIterable {
        /// It belongs neither to the key nor to the upstream request.
        case strip
        /// The upstream gets it; it does not belong to the key.
        case forward
        /// It is a parameter like any other.
        case key
    }

    /// The validators that prove that two responses have the same representation, so that their bytes may be combined
    /// in one file.
    package enum TrustedValidators: String, Hashable, Sendable, CaseIterable {
        /// A strong entity tag, or a strong date (RFC 9110 §8.8).
        case strong
        /// Also equal length and `Last-Modified`, regardless of the tags. For servers of one network that give
        /// different tags to equal bytes.
        case lengthAndLastModified
        /// The administrator guarantees that the content of a URL never changes. Only a different length is a
        /// contradiction.
        case immutable
    }

    /// The response to a range request while the length of the asset is unknown.
    package enum UnknownLength: String, Hashable, Sendable, CaseIterable {
        /// 200 with the whole body, because some players cannot parse a `Content-Range` without a length.
        case whole
        /// 206 with `Content-Range: bytes first-last/*`.
        case partial
    }

    /// The body of the response if the upstream refused the request. The status is always that of the upstream.
    package enum ErrorBodies: String, Hashable, Sendable, CaseIterable {
        /// The body of the upstream's response.
        case upstream
        /// A problem document (RFC 9457).
        case problem
    }

    /// The content that replaces a read that fails, or times out, before its response head.
    package enum Fallback: Hashable, Sendable {
        /// A cached asset.
        case asset(AssetID)
        /// A path below the configured directory of fallbacks.
        case file(String)
    }

    /// The settings of the circuit breaker of each upstream address.
    package struct CircuitBreaker: Hashable, Sendable {
        /// The number of consecutive failures that open the circuit.
        package var failures: Int
        /// The first pause of an open circuit. It doubles with each failed probe, up to one minute.
        package var pause: Duration

        package init(failures: Int = 10, pause: Duration = .seconds(2)) {
            self.failures = failures
            self.pause = pause
        }
    }

    /// Whether content of the origin needs a token.
    package enum Access: String, Hashable, Sendable, CaseIterable { case `public`, token }

    package var baseURL: String
    /// Header fields for each request to the origin's own host; their values are secrets.
    package var headers: HeaderList = [:]
    package var freshness: Freshness = .respect
    package var keyQuery: KeyQuery = .all
    package var cmcd: CMCD = .strip
    /// The timeouts of one upstream request.
    package var timeouts = TransferTimeouts()
    /// The time limit of a read for its first byte; then the response is 504.
    package var readTimeout: Duration = .seconds(30)
    /// The number of consecutive failures of a transfer that are retried.
    package var retries: Int = 3
    /// The number of concurrent transfers.
    package var maxTransfers: Int = 16
    /// The rate limit of all transfers together; nil: no limit.
    package var maxBytesPerSecond: Int64?
    /// The largest window, and the largest distance between a transfer and its readers.
    package var readAheadBytes: Int64 = 16 << 20
    /// A window without readers is finished if at most this much is missing; otherwise it is cut.
    package var finishIfRemainingBytes: Int64 = 8 << 20
    /// Likewise if at most this percentage of the window is missing; nil: only the bytes count.
    package var finishIfRemainingPercent: Int?
    /// The largest number of cached bytes between gaps that one window fetches again, to save a second request.
    package var gapMergeBytes: Int64 = 64 << 10
    /// The number of bytes that are fetched behind the requested range.
    package var speculativeBytes: Int64 = 0
    /// Other base URLs with the same paths. The next one is used if the one before it fails.
    package var mirrors: [String] = []
    /// Patterns of hosts that redirects may lead to, besides those of the base URL and the mirrors. Empty: all hosts that
    /// the address guard permits.
    package var redirectHosts: [String] = []
    /// Whether a second request is sent if the first byte is later than the 95th percentile.
    package var hedging: Bool = false
    /// Whether the index behind the media data of an MP4 file is fetched as soon as a reader has passed the first bytes.
    package var anticipatesIndex = true
    /// Whether requests to a mounted origin carry `traceparent` and `tracestate`.
    package var propagatesTrace = true
    /// Nil: requests continue regardless of failures.
    package var circuitBreaker: CircuitBreaker? = CircuitBreaker()
    /// Whether upstreams may have private addresses.
    package var allowPrivateAddresses: Bool = false
    package var tls = TLSSettings()
    /// Nil: `token` if the origin has header fields, credentials or an account of its own, otherwise `public`.
    package var access: Access?
    /// A file of header fields, one `Name: value` per line, below the configured directory of credentials files. They
    /// are sent like `headers` and replace those of the same name.
    package var credentialsFile: String?
    /// The account with which requests are authorized.
    @Boxed package var auth = OriginAuth()
    /// The API call that returns links to the content.
    @Boxed package var resolution = LinkResolution()
    /// The names of the reader's header fields that are sent to the origin's own host.
    package var forwarded: [String] = []
    /// Whether all values of the forwarded fields share one asset, after each reader's right is proved.
    package var sharesForwarded = false
    package var trustValidators: TrustedValidators = .strong
    /// The time after the end of its freshness for which a response may be used if the upstream fails. It overrides the
    /// response, except for directives that forbid stale use (RFC 9111 §4.2.4). Nil: as the response says (RFC 5861
    /// §4).
    package var staleIfError: Duration?
    /// The longest time for which a stored error status with a lifetime of its own is repeated without a request; nil:
    /// never.
    package var negativeCaching: Duration? = .seconds(300)
    /// Whether a reader's `Cache-Control` and `Pragma` are obeyed (RFC 9111 §5.2.1).
    package var requestDirectives: Bool = false
    /// Request header fields that do not select variants, regardless of `Vary`.
    package var ignoreVary: [String] = []
    package var unknownLength: UnknownLength = .whole
    package var errorBodies: ErrorBodies = .problem
    package var fallback: Fallback?
    /// The limits on length and media type of stored responses.
    package var storeRules = StoreRules()
    /// The guaranteed and the largest disk space of the origin.
    package var quota = Quota()
    /// When bytes from the disk are compared with their checksums.
    package var verification: Verification = .first
    /// Whether content is stored encrypted.
    package var isEncrypted = false

    package init(baseURL: String) { self.baseURL = baseURL }

    /// Whether content needs a token, after the default of `access` is applied.
    package var effectiveAccess: Access {
        access ?? (hasCredentials ? .token : .public)
    }

    /// Whether readers send their own `Authorization` to the upstream.
    package var forwardsAuthorization: Bool { forwarded.contains { FieldText.lowered($0) == "authorization" } }

    /// Whether requests to the origin have credentials of the service.
    private var hasCredentials: Bool {
        !headers.fields.isEmpty || credentialsFile != nil || auth.kind != nil || resolution.url != nil
    }
}
