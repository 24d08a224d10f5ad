package import CacheCore
package import ReaderAccess

/// Authorization rules of the API: readers with scopes and limits, signed content URLs, or local access without tokens.
package struct AccessRules: Sendable {
    /// The authorization that a route requires.
    package enum Need: Hashable, Sendable {
        /// None, under any host name: health checks.
        case nothing
        /// None for assets of public origins, else the `read` scope or a signature: content.
        case content
        /// The scope `read`, or a ticket in the query, which the route checks: the event stream.
        case ticketOrRead
        /// The scope `admin`, or the scope `read` with limits: the requests of all readers, or those inside the limits.
        case requests
        /// The proof of another node, which the route checks.
        case node
        case scope(AccessScope)

        /// The smallest sufficient scope; nil if no token is needed.
        var scope: AccessScope? {
            switch self {
            case .nothing, .node: nil
            case .content, .ticketOrRead, .requests: .read
            case .scope(let scope): scope
            }
        }

        /// The smallest scope that is sufficient for the reader; nil if no token is needed.
        func scope(for reader: Reader) -> AccessScope? {
            self == .requests && !reader.isLimited ? .admin : scope
        }

        /// Whether the scope of the reader is sufficient.
        func isMet(by reader: Reader) -> Bool { scope(for: reader).map { reader.permits($0) } ?? (self != .node) }
    }

    /// The accepted tokens and certificates.
    package let directory: ReaderDirectory
    /// The keys of signed content URLs; nil: signed URLs are not accepted.
    package let signatures: ContentSignatures?
    /// Whether no token is configured. It does not depend on the content of the tokens file, so that an empty file does not
    /// open the service.
    private let hasNoSources: Bool
    /// Whether no token is required: none is configured, and there was none of the API since the start. The deletion of the last
    /// one does not open the service.
    package var isOpen: Bool { hasNoSources && !directory.hadAPITokens }
    /// Without tokens: whether requests under any host name are allowed.
    private let allowsAnyHost: Bool

    /// - Parameters:
    ///   - directory: The accepted tokens.
    ///   - signatures: The keys of signed content URLs.
    ///   - hasNoSources: Whether no token is configured, so that only local host names are allowed. Nil: whether `directory` is
    ///     empty.
    ///   - allowUnauthenticated: Without tokens, allows requests under any host name.
    package init(
        _ directory: ReaderDirectory = ReaderDirectory(), signatures: ContentSignatures? = nil,
        hasNoSources: Bool? = nil,
        allowUnauthenticated: Bool = false
    ) {
        self.directory = directory
        self.signatures = signatures
        self.hasNoSources = hasNoSources ?? !directory.hasReaders
        allowsAnyHost = allowUnauthenticated
    }

    /// Checks the authorization of a request and returns its reader; nil if it has none and needs none.
    ///
    /// Throws `.unauthorized` if the token is missing, unknown, invalid, revoked or expired, and `.tokenScope` if its
    /// scope is insufficient (RFC 6750 §3.1). For public content, it throws `.unauthorized` only for such tokens of this
    /// service; others can be credentials of the upstream. The limits of the reader are not checked here.
    ///
    /// Without tokens it throws `.forbidden` for a host name that is not local. That prevents DNS rebinding: a web page
    /// on a host name that resolves to this machine would otherwise reach the API through a local browser.
    ///
    /// - Parameters:
    ///   - host: The `Host` field.
    ///   - contentIsPublic: Whether the asset's origin allows reads without a token.
    package func admit(
        _ need: Need, _ credentials: RequestCredentials, host: String?, at now: Timestamp,
        contentIsPublic: Bool = false
    ) throws(CacheError) -> Reader? {
        guard let needed = need.scope else { return nil }
        if isOpen {
            guard allowsAnyHost || Self.isLocal(host: host) else {
                throw CacheError(.forbidden, "The host is not localhost; set a token or access.allowUnauthenticated.")
            }
            return nil
        }
        let found = lookUp(credentials, at: now)
        if need == .content, contentIsPublic {
            switch found {
            case .reader, .withoutScope, .unknown, .foreign, nil: return found?.reader
            case .expired, .invalid, .revoked, .misplaced:
                // An ended certificate gives no less than none.
                guard credentials.authorization != nil else { return nil }
            }
        }
        switch found {
        case .reader(let reader):
            guard need.isMet(by: reader) else {
                let needed = need.scope(for: reader) ?? needed
                throw CacheError(
                    .tokenScope,
                    "The token \(reader.id) has the scope \(reader.scope.rawValue); \(needed.rawValue) is required.",
                    challenge: BearerChallenge.insufficientScope(needed))
            }
            return reader
        case .withoutScope(let id):
            throw CacheError(
                .tokenScope, "The token \(id) has no scope; \(needed.rawValue) is required.",
                challenge: BearerChallenge.insufficientScope(needed))
        case .unknown, nil:
            throw CacheError(
                .unauthorized, "A bearer token with the scope \(needed.rawValue) is required.",
                challenge: credentials.bearerToken == nil ? nil : BearerChallenge.invalidToken)
        case .expired, .invalid, .foreign, .revoked, .misplaced:
            let reason = found?.message.map { $0 + " " } ?? ""
            throw CacheError(
                .unauthorized, "\(reason)A token with the scope \(needed.rawValue) is required.",
                challenge: credentials.authorization == nil ? nil : BearerChallenge.invalidToken)
        }
    }

    /// Verifies a signature for content. Throws `.tokenExpired`, `.tokenInvalid` or `.tokenScope`.
    func admit(
        _ signature: PresentedSignature, _ content: SignedContent, at now: Timestamp
    ) throws(CacheError) -> Admission {
        guard let signatures else {
            throw CacheError(.tokenInvalid, "Signed URLs are not accepted; set access.signing.keysDirectory.")
        }
        do throws(AccessRefusal) {
            return Admission(
                try signatures.verify(
                    signature, path: content.path, remainingQuery: content.query, base: content.base, at: now))
        } catch {
            throw CacheError(error)
        }
    }

    /// Removes the signature of a content URL from a request target in origin form.
    ///
    /// Other targets, and without keys all targets, are left alone, because the parameters can belong to the upstream. A
    /// token in a path is always removed; nothing else has that form.
    func strip(_ target: String) -> (target: String, signature: PresentedSignature?) {
        guard !target.utf8.starts(with: "/o/".utf8) else {
            return signatures == nil ? (target, nil) : PresentedSignature.strip(target: target)
        }
        guard PresentedSignature.resemblesPathToken(target) else { return (target, nil) }
        let (clean, signature) = PresentedSignature.strip(target: target)
        // A path that only resembles one with a token has no resource. The token must not reach the log.
        return signature == nil || !clean.utf8.starts(with: "/o/".utf8) ? ("/t", nil) : (clean, signature)
    }

    /// The look-up of the bearer token, or without `Authorization` of the client certificate. Nil without either.
    private func lookUp(_ credentials: RequestCredentials, at now: Timestamp) -> TokenLookup? {
        guard credentials.authorization != nil else {
            guard !credentials.subjects.isEmpty else { return nil }
            return directory.reader(ofCertificateNames: credentials.subjects, at: now)
        }
        let found = credentials.bearerToken.map { directory.reader(ofBearer: $0, at: now) }
        if let found, found.isOwn { return found }
        return hasOwnWord(credentials, at: now) ? .misplaced : found
    }

    /// Whether `Authorization` contains a token of this service, valid or not, in any form. Such a token must not reach
    /// an upstream.
    func isOwn(_ credentials: RequestCredentials, at now: Timestamp) -> Bool {
        guard let token = credentials.bearerToken else { return hasOwnWord(credentials, at: now) }
        return directory.reader(ofBearer: token, at: now).isOwn || hasOwnWord(credentials, at: now)
    }

    private func hasOwnWord(_ credentials: RequestCredentials, at now: Timestamp) -> Bool {
        credentials.authorizationWords.contains { directory.reader(ofBearer: $0, at: now).isOwn }
    }

    /// Prevents cross-site request forgery. Without tokens it throws `.forbidden` for a changing request from a web
    /// page with an origin that is neither local nor allowed by `isAllowed`.
    ///
    /// - Parameter isAmbient: Whether the client certificate authorizes the request. A browser presents it for requests
    ///   of any page, so that the same rule applies.
    package func admitOrigin(
        _ origin: String?, isChanging: Bool, isAmbient: Bool = false, isAllowed: (String) -> Bool
    ) throws(CacheError) {
        guard isOpen || isAmbient, isChanging, let origin, !isAllowed(origin) else { return }
        let host = origin.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: true).last.map(String.init)
        guard Self.isLocal(host: host) else {
            throw CacheError(.forbidden, "Changes from this web origin are forbidden; add it to cors.allowedOrigins.")
        }
    }

    /// Whether a `Host` field names this machine (`localhost`, `127.0.0.1`, `[::1]`), with or without a port.
    static func isLocal(host: String?) -> Bool {
        guard var name = host?.lowercased()[...] else { return false }
        if let colon = name.lastIndex(of: ":"), name[name.index(after: colon)...].allSatisfy(\.isNumber),
            !name.hasPrefix("[") || name[..<colon].hasSuffix("]")
        {
            name = name[..<colon]
        }
        return name == "localhost" || name == "127.0.0.1" || name == "[::1]"
    }
}
