package import CacheCore
import Crypto

/// The scope of an access token. `admin` includes `read`.
package enum AccessScope: String, Hashable, Sendable, CaseIterable, Comparable {
    /// Content and all calls that change nothing.
    case read
    /// All calls.
    case admin

    package static func < (left: Self, right: Self) -> Bool { left == .read && right == .admin }
}

/// Authorization rules of the API: bearer tokens (RFC 6750) with scopes, or local access without tokens.
package struct AccessRules: Sendable {
    /// The authorization that a route requires.
    package enum Need: Hashable, Sendable {
        /// None, under any host name: health checks.
        case nothing
        /// None for assets of public origins, else the `read` scope: content.
        case content
        /// The scope `read`, or a ticket in the query, which the route checks: the event stream.
        case ticketOrRead
        case scope(AccessScope)
    }

    /// A configured token; only its digest is kept.
    private struct Entry: Sendable {
        /// SHA-256 of the token.
        var digest: [UInt8]
        var scope: AccessScope
    }

    private let entries: [Entry]
    /// Without tokens: whether requests under any host name are allowed.
    private let allowsAnyHost: Bool

    /// - Parameters:
    ///   - tokens: The accepted tokens. If it is empty, no token is required, and only local host names are allowed.
    ///   - allowUnauthenticated: Without tokens, allows requests under any host name.
    package init(tokens: [(token: String, scope: AccessScope)] = [], allowUnauthenticated: Bool = false) {
        entries = tokens.map { Entry(digest: Self.digest($0.token), scope: $0.scope) }
        allowsAnyHost = allowUnauthenticated
    }

    /// Checks the authorization of a request.
    ///
    /// Throws `.unauthorized` if the token is missing or unknown, and `.forbidden` if its scope is insufficient.
    ///
    /// Without tokens it throws `.forbidden` for a host name that is not local. That prevents DNS rebinding: a web page
    /// on a host name that resolves to this machine would otherwise reach the API through a local browser.
    ///
    /// - Parameters:
    ///   - authorization: The `Authorization` field.
    ///   - host: The `Host` field.
    ///   - contentIsPublic: Whether the asset's origin allows reads without a token.
    package func admit(
        _ need: Need, authorization: String?, host: String?, contentIsPublic: Bool = false
    ) throws(CacheError) {
        guard need != .nothing else { return }
        if entries.isEmpty {
            guard allowsAnyHost || Self.isLocal(host: host) else {
                throw CacheError(.forbidden, "The host is not localhost; set a token or access.allowUnauthenticated.")
            }
            return
        }
        let needed: AccessScope
        switch need {
        case .nothing: return
        case .content:
            if contentIsPublic { return }
            needed = .read
        case .ticketOrRead: needed = .read
        case .scope(let scope): needed = scope
        }
        guard let given = scope(of: authorization) else {
            throw CacheError(.unauthorized, "A bearer token with the scope \(needed.rawValue) is required.")
        }
        guard given >= needed else {
            throw CacheError(.forbidden, "The token's scope is \(given.rawValue); \(needed.rawValue) is required.")
        }
    }

    /// Prevents cross-site request forgery. Without tokens it throws `.forbidden` for a changing request from a web
    /// page with an origin that is neither local nor allowed by `isAllowed`.
    package func admitOrigin(_ origin: String?, isChanging: Bool, isAllowed: (String) -> Bool) throws(CacheError) {
        guard entries.isEmpty, isChanging, let origin, !isAllowed(origin) else { return }
        let host = origin.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: true).last.map(String.init)
        guard Self.isLocal(host: host) else {
            throw CacheError(.forbidden, "Changes from this web origin are forbidden; add it to cors.allowedOrigins.")
        }
    }

    /// The scope of the given bearer token; nil if it is missing or unknown.
    ///
    /// It compares digests, and all of them, so that the time does not depend on how much of a token is correct.
    private func scope(of authorization: String?) -> AccessScope? {
        guard let authorization, authorization.utf8.count > 7, authorization.prefix(7).lowercased() == "bearer " else {
            return nil
        }
        let given = Self.digest(String(authorization.dropFirst(7).drop { $0 == " " }))
        var best: AccessScope?
        for entry in entries {
            let difference = zip(entry.digest, given).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) }
            if difference == 0 { best = max(best ?? entry.scope, entry.scope) }
        }
        return best
    }

    /// The name of the given bearer token in the access log: its scope; nil if it is missing or unknown.
    package func tokenName(of authorization: String?) -> String? { scope(of: authorization)?.rawValue }

    /// The scope of an authorized request. Without tokens it is `admin`.
    func scope(ofAuthorized authorization: String?) -> AccessScope {
        entries.isEmpty ? .admin : scope(of: authorization) ?? .read
    }

    private static func digest(_ token: String) -> [UInt8] { Array(SHA256.hash(data: Array(token.utf8))) }

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
