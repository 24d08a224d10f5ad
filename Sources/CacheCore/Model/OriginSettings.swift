/// A named upstream base URL with its settings; mounted at `/o/{name}/…`.
package struct Origin: Hashable, Sendable {
    package var name: String
    package var settings: OriginSettings

    package init(name: String, settings: OriginSettings) {
        self.name = name
        self.settings = settings
    }

    /// The name under which reads of absolute URLs are counted; no mounted origin can have it.
    package static let absoluteName = "(url)"

    /// Whether `name` may be mounted: 1–64 of a–z, 0–9, `.`, `_`, `-`, the first a letter or digit.
    package static func isValid(name: String) -> Bool {
        func isAlphanumeric(_ byte: UInt8) -> Bool { (97...122).contains(byte) || (48...57).contains(byte) }
        guard let first = name.utf8.first, name.utf8.count <= 64, isAlphanumeric(first) else { return false }
        return name.utf8.allSatisfy { isAlphanumeric($0) || $0 == 45 || $0 == 46 || $0 == 95 }
    }
}

package struct OriginSettings: Hashable, Sendable {
    /// How long what the upstream sent may be used without asking again.
    package enum Freshness: Hashable, Sendable {
        /// As the response's own headers say; where they say nothing, a tenth of the time since `Last-Modified`, at most a
        /// day (RFC 9111 §4.2).
        case respect
        /// As the response's own headers say; where they say nothing, it is confirmed before each use.
        case explicit
        /// This long, whatever they say.
        case ttl(Duration)
    }

    /// Which part of the query names the asset.
    package enum KeyQuery: Hashable, Sendable {
        case all
        case none
        case include([String])
        case exclude([String])
    }

    /// What proves that two answers are of one representation, so that their bytes may stand in one file.
    package enum TrustedValidators: String, Hashable, Sendable, CaseIterable {
        /// A strong entity tag, or a strong date (RFC 9110 §8.8).
        case strong
        /// Also the same length and `Last-Modified`, whatever the tags say: servers of one network that tag alike bytes
        /// differently.
        case lengthAndLastModified
        /// The administrator vouches that what is at a URL never changes: only a different length contradicts.
        case immutable
    }

    /// How a range of an asset whose length is not known is answered.
    package enum UnknownLength: String, Hashable, Sendable, CaseIterable {
        /// 200 and everything: players stumble over a `Content-Range` without a length.
        case whole
        /// 206 with `Content-Range: bytes first-last/*`.
        case partial
    }

    /// The body of the response to a read that the upstream refuses; the status is the upstream's in any case.
    package enum ErrorBodies: String, Hashable, Sendable, CaseIterable {
        /// The upstream's own.
        case upstream
        /// A problem document (RFC 9457).
        case problem
    }

    /// What a read answers that fails, or times out, before its head.
    package enum Fallback: Hashable, Sendable {
        case asset(AssetID)
        /// A path below the configured directory of fallbacks.
        case file(String)
    }

    /// When an origin that keeps failing is left alone for a while.
    package struct CircuitBreaker: Hashable, Sendable {
        /// Failures in a row that open the circuit.
        package var failures: Int
        /// How long nothing is asked then, at first; doubled with each probe that fails, up to a minute.
        package var pause: Duration

        package init(failures: Int = 10, pause: Duration = .seconds(2)) {
            self.failures = failures
            self.pause = pause
        }
    }

    package enum Access: String, Hashable, Sendable, CaseIterable { case `public`, token }

    package var baseURL: String
    /// Sent with each request to the origin's own host; values are secrets.
    package var headers: HeaderList
    package var freshness: Freshness
    package var keyQuery: KeyQuery
    package var timeouts: TransferTimeouts
    /// To the first byte of a read; then 504.
    package var readTimeout: Duration
    /// How often a broken transfer is begun again.
    package var retries: Int
    package var maxTransfers: Int
    package var maxBytesPerSecond: Int64?
    /// How far windows may grow ahead of a sequential reader.
    package var readAheadBytes: Int64
    /// A window that its last reader left is finished where no more than this is missing; else it is cut.
    package var finishIfRemainingBytes: Int64
    /// Likewise where no more than this part of it, in percent, is missing; nil: only the bytes count.
    package var finishIfRemainingPercent: Int?
    /// Cached runs shorter than this between two gaps are fetched again with them: one request in place of two.
    package var gapMergeBytes: Int64
    /// How much is fetched beyond what a reader asked for.
    package var speculativeBytes: Int64
    /// Other base URLs with the same paths, asked in turn where the one before fails.
    package var mirrors: [String]
    /// Whether a second request is sent where the first byte is later than 95 of 100 were.
    package var hedging: Bool
    /// Nil: the origin is asked however often it fails.
    package var circuitBreaker: CircuitBreaker?
    package var allowPrivateAddresses: Bool
    package var tls: TLSSettings
    /// Nil: `token` where the origin has headers or credentials of its own, else `public`.
    package var access: Access?
    /// A file of header fields, `Name: value` on each line, below the configured directory of credentials; sent as
    /// `headers` are, over those of the same name.
    package var credentialsFile: String?
    package var trustValidators: TrustedValidators
    /// How long after its freshness ended a response may be used where the upstream fails, whatever it says itself, but
    /// for what forbids stale use (RFC 9111 §4.2.4); nil: as the response says (RFC 5861 §4).
    package var staleIfError: Duration?
    /// The longest that a refusal of the upstream with a lifetime of its own is repeated unasked; nil: none is.
    package var negativeCaching: Duration?
    /// Whether a reader's `Cache-Control` and `Pragma` are obeyed (RFC 9111 §5.2.1).
    package var requestDirectives: Bool
    /// Fields that do not tell variants apart, whatever `Vary` says.
    package var ignoreVary: [String]
    package var unknownLength: UnknownLength
    package var errorBodies: ErrorBodies
    package var fallback: Fallback?
    package var storeRules: StoreRules
    package var quota: Quota
    /// When bytes from the disk are compared with their checksums.
    package var verification: Verification

    package init(baseURL: String) {
        self.baseURL = baseURL
        headers = [:]
        freshness = .respect
        keyQuery = .all
        timeouts = TransferTimeouts()
        readTimeout = .seconds(30)
        retries = 3
        maxTransfers = 16
        maxBytesPerSecond = nil
        readAheadBytes = 16 << 20
        finishIfRemainingBytes = 8 << 20
        finishIfRemainingPercent = nil
        gapMergeBytes = 64 << 10
        speculativeBytes = 0
        mirrors = []
        hedging = false
        circuitBreaker = CircuitBreaker()
        allowPrivateAddresses = false
        tls = TLSSettings()
        access = nil
        credentialsFile = nil
        trustValidators = .strong
        staleIfError = nil
        negativeCaching = .seconds(300)
        requestDirectives = false
        ignoreVary = []
        unknownLength = .whole
        errorBodies = .problem
        fallback = nil
        storeRules = StoreRules()
        quota = Quota()
        verification = .suspect
    }

    /// Whether content needs a token.
    package var effectiveAccess: Access {
        access ?? (headers.fields.isEmpty && credentialsFile == nil ? .public : .token)
    }
}
