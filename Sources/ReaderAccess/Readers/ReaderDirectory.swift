package import CacheCore
package import WebTokens

/// The readers of the service: the two configured tokens, the tokens file, tokens of the API, certificates and JSON Web
/// Tokens.
///
/// A look-up reads an immutable snapshot and takes constant time, so that it may run on an event loop. Only the first
/// look-up of a JWT verifies its signature.
package final class ReaderDirectory: Sendable {
    /// The index of one set of sources.
    private final class Snapshot: Sendable {
        let sources: Sources
        let byDigest: [TokenDigest: Reader]
        let bySubject: [[UInt8]: Reader]
        /// By identifier.
        let byName: [String: Reader]
        /// All but JSON Web Tokens, in the order of their identifiers.
        let listed: [ListedToken]
        /// Distinguishes snapshots in the cache of verified tokens.
        let generation: UInt64

        init(_ sources: Sources, generation: UInt64) {
            var byDigest: [TokenDigest: Reader] = [:]
            var bySubject: [[UInt8]: Reader] = [:]
            for entry in sources.file?.entries ?? [] {
                if let digest = entry.digest { byDigest[digest] = entry.reader }
                for subject in entry.subjects { bySubject[TokensFile.comparable(subject)] = entry.reader }
            }
            // The configured tokens win over the file, and admin over read.
            if let digest = sources.readToken { byDigest[digest] = Reader(id: "read", scope: .read) }
            if let digest = sources.adminToken { byDigest[digest] = Reader(id: "admin", scope: .admin) }
            var byName: [String: Reader] = [:]
            for entry in sources.file?.entries ?? [] { byName[entry.reader.id] = entry.reader }
            let configured = [sources.readToken, sources.adminToken].compactMap { $0.flatMap { byDigest[$0] } }
            for reader in configured { byName[reader.id] = reader }
            var listed = configured.map { ListedToken(reader: $0, source: .configuration) }
            listed += (sources.file?.entries ?? []).map { entry in
                ListedToken(
                    reader: entry.reader, source: .file, subjects: entry.subjects,
                    isOverridden: byName[entry.reader.id] != entry.reader)
            }
            for token in sources.api {
                let (reader, digest) = (token.entry.reader, token.entry.digest)
                let isOverridden = byName[reader.id] != nil || digest.map { byDigest[$0] != nil } ?? false
                listed.append(ListedToken(token, isOverridden: isOverridden))
                if let digest, !isOverridden { (byDigest[digest], byName[reader.id]) = (reader, reader) }
            }
            self.listed = listed.sorted { ($0.reader.id, $0.source.rawValue) < ($1.reader.id, $1.source.rawValue) }
            self.sources = sources
            self.byName = byName
            self.byDigest = byDigest
            self.bySubject = bySubject
            self.generation = generation
        }
    }

    /// The sources of readers.
    private struct Sources: Sendable {
        var adminToken: TokenDigest?
        var readToken: TokenDigest?
        var file: TokensFile?
        /// The tokens of the API, and the number of their changes.
        var api: [APIToken] = []
        var apiVersion = -1
        var hadAPITokens = false
        var rules: JWTRules?
        var keys = JSONWebKeySet([])
    }

    /// A verified JWT.
    private struct Verified: Sendable {
        var lookup: TokenLookup
        var endsAt: Timestamp
        var generation: UInt64
    }

    /// The request for a newer key set.
    private struct KeyRequest: Sendable {
        var isOpen = false
        var lastGranted: Duration?
    }

    /// The record of tokens.
    private struct Issued: Sendable {
        var tokens = IssuedTokens()
        /// Whether the sources have changed since the last call of ``recordTokens(at:)``.
        var isOutdated = false
    }

    /// The interval between two requests for keys.
    private static let keyInterval = Duration.seconds(60)
    /// The number of verified tokens in the cache.
    private static let cacheCapacity = 8192

    private let snapshot: OrderedMutex<Snapshot>
    private let verified = OrderedMutex(.leaf, BoundedTable<TokenDigest, Verified>(capacity: cacheCapacity))
    private let keyRequest = OrderedMutex(.leaf, KeyRequest())
    /// The URL of a key set whose last download has failed.
    private let missing = OrderedMutex<String?>(.leaf, nil)
    private let issued = OrderedMutex(.issuedTokens, Issued())

    /// A directory without readers.
    package init() { snapshot = OrderedMutex(.leaf, Snapshot(Sources(), generation: 0)) }

    // MARK: Sources

    /// Replaces the two configured tokens; nil for none. Their ids are `admin` and `read`.
    package func update(adminToken: String?, readToken: String?) {
        replace { sources in
            sources.adminToken = adminToken.map { TokenDigest(of: $0) }
            sources.readToken = readToken.map { TokenDigest(of: $0) }
        }
    }

    /// Replaces the tokens file; nil for none.
    package func update(file: TokensFile?) { replace { $0.file = file } }

    /// Replaces the tokens of the API. An earlier version than the present one has no effect.
    package func update(api tokens: [APIToken], version: Int) {
        replace { sources in
            guard version > sources.apiVersion else { return }
            (sources.api, sources.apiVersion) = (tokens, version)
            if !tokens.isEmpty { sources.hadAPITokens = true }
        }
    }

    /// Replaces the rules for JSON Web Tokens; nil refuses all. Requests keys if there are none.
    package func update(rules: JWTRules?) {
        replace { $0.rules = rules }
        let hasKeys = snapshot.withLock { !$0.sources.keys.keys.isEmpty }
        keyRequest.withLock { $0.isOpen = rules != nil && !hasKeys }
    }

    /// Replaces the keys of the identity provider, and closes the request for keys. After a failed retrieval do not
    /// call it: the old keys stay valid.
    package func update(keys: JSONWebKeySet) {
        replace { $0.keys = keys }
        keyRequest.withLock { $0.isOpen = false }
    }

    /// Records the URL of a key set that could not be read; nil: it was read, or there is none.
    package func update(missingKeySet url: String?) { missing.withLock { $0 = url } }

    /// The URL of the key set if it was never read; then all JSON Web Tokens are refused.
    package var missingKeySet: String? {
        let hasKeys = snapshot.withLock { !$0.sources.keys.keys.isEmpty }
        return hasKeys ? nil : missing.withLock { $0 }
    }

    /// All tokens but JSON Web Tokens, in the order of their identifiers.
    package var tokens: [ListedToken] { snapshot.withLock { $0 }.listed }

    /// Whether there was a token of the API since the start.
    package var hadAPITokens: Bool { snapshot.withLock { $0 }.sources.hadAPITokens }

    /// Whether any token, certificate or JWT rule is configured. Without one, requests need no token.
    package var hasReaders: Bool {
        let snapshot = snapshot.withLock { $0 }
        return !snapshot.byDigest.isEmpty || !snapshot.bySubject.isEmpty || snapshot.sources.rules != nil
    }

    /// Whether the owner should retrieve the key set now: after a token with an unknown `kid`, at most once a minute.
    ///
    /// - Parameter uptime: The time of a monotonic clock.
    package func takeKeyRequest(at uptime: Duration) -> Bool {
        keyRequest.withLock { request in
            guard request.isOpen else { return false }
            if let last = request.lastGranted, uptime - last < Self.keyInterval { return false }
            request.isOpen = false
            request.lastGranted = uptime
            return true
        }
    }

    /// Whether a token with an unknown `kid` came since the last granted request for keys.
    package var needsKeys: Bool { keyRequest.withLock { $0.isOpen } }

    private func replace(_ change: (inout Sources) -> Void) {
        let present = snapshot.withLock { snapshot in
            var sources = snapshot.sources
            change(&sources)
            snapshot = Snapshot(sources, generation: snapshot.generation + 1)
            return snapshot.byDigest.keys
        }
        issued.withLock { issued in
            issued.tokens.add(present)
            issued.isOutdated = true
        }
        verified.withLock { $0.removeAll() }
    }

    // MARK: Earlier tokens

    /// Adds tokens that an earlier process had, so that those that were removed since are known as revoked.
    package func recall(_ tokens: IssuedTokens) {
        let present = snapshot.withLock { $0.byDigest.keys }
        issued.withLock { issued in
            issued.tokens = tokens
            issued.tokens.add(present)
            issued.isOutdated = true
        }
    }

    /// Records the removals since the last call. Returns the record for the next process; nil if the sources have not
    /// changed.
    package func recordTokens(at now: Timestamp) -> IssuedTokens? {
        issued.withLock { issued in
            guard issued.isOutdated else { return nil }
            issued.isOutdated = false
            // Read here: a token that is added meanwhile would be recorded as a removed one.
            issued.tokens.update(present: snapshot.withLock { Set($0.byDigest.keys) }, at: now)
            return issued.tokens
        }
    }

    // MARK: Look-ups

    /// The reader of a bearer token (RFC 6750).
    ///
    /// - Parameter token: The text after `Bearer` and its spaces.
    package func reader(ofBearer token: String, at now: Timestamp) -> TokenLookup {
        let snapshot = snapshot.withLock { $0 }
        let digest = TokenDigest(of: token)
        if let reader = snapshot.byDigest[digest] { return Self.checked(reader, at: now) }
        if issued.withLock({ $0.tokens.contains(digest, at: now) }) { return .revoked }
        guard let rules = snapshot.sources.rules, token.utf8.contains(UInt8(ascii: ".")) else { return .unknown }
        let cached = verified.withLock { $0[digest] }
        if let cached, cached.generation == snapshot.generation {
            return now < cached.endsAt ? cached.lookup : .expired(id: nil)
        }
        return verify(token, digest, rules, snapshot, at: now)
    }

    /// The reader of a client certificate: the first of its names that an entry of the tokens file has in `subjects`.
    ///
    /// - Parameter names: The names of the verified certificate: `CN=…`, `DNS:…`, `URI:…`, `EMAIL:…`.
    package func reader(ofCertificateNames names: [String], at now: Timestamp) -> TokenLookup {
        let snapshot = snapshot.withLock { $0 }
        for name in names {
            if let reader = snapshot.bySubject[TokensFile.comparable(name)] { return Self.checked(reader, at: now) }
        }
        return .unknown
    }

    /// The reader with the identifier of a token that is configured, in the tokens file or of the API, unless it has expired; nil also for those of
    /// JSON Web Tokens, which only their tokens describe.
    package func reader(named id: String, at now: Timestamp) -> Reader? {
        guard let reader = snapshot.withLock({ $0 }).byName[id] else { return nil }
        return Self.checked(reader, at: now).reader
    }

    private static func checked(_ reader: Reader, at now: Timestamp) -> TokenLookup {
        if let end = reader.expiresAt, now >= end { return .expired(id: reader.id) }
        return .reader(reader)
    }

    /// Verifies a JWT, and remembers it until it ends or the sources change.
    ///
    /// A token of another service is `.foreign`. If neither an issuer nor an audience is configured, these are the
    /// tokens that no known key has signed.
    private func verify(
        _ token: String, _ digest: TokenDigest, _ rules: JWTRules, _ snapshot: Snapshot, at now: Timestamp
    ) -> TokenLookup {
        var isOwn = false
        do {
            isOwn = try rules.areAddressed(by: JSONWebToken.unverifiedPayload(of: token))
            let claims = try claims(of: try JSONWebToken.parse(token), snapshot.sources.keys, rules)
            isOwn = true
            try rules.claimRules.check(claims, at: now)
            let (id, reader) = try rules.reader(of: claims)
            let lookup: TokenLookup = reader.map { .reader($0) } ?? .withoutScope(id: id)
            let expiry = try ClaimRules.instant("exp", of: claims).map { $0 + rules.leeway }
            let entry = Verified(lookup: lookup, endsAt: expiry ?? now, generation: snapshot.generation)
            verified.withLock { $0[digest] = entry }
            return lookup
        } catch {
            guard isOwn else { return .foreign(error) }
            return error == .expired ? .expired(id: nil) : .invalid(error)
        }
    }

    /// The verified claims. Opens a request for keys if the token's key is unknown, or if a token without `kid` fits no
    /// key.
    private func claims(
        of token: JSONWebSignature, _ keys: JSONWebKeySet, _ rules: JWTRules
    ) throws(TokenRefusal) -> JSON {
        do {
            return try token.verifiedClaims(with: keys, allowing: rules.algorithms)
        } catch {
            if error == .unknownKey || error == .badSignature && token.keyID == nil {
                keyRequest.withLock { $0.isOpen = true }
            }
            throw error
        }
    }
}
