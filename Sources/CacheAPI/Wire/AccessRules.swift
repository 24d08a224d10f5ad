package import CacheCore
import Crypto

/// What a token may do.
package enum AccessScope: String, Hashable, Sendable, CaseIterable, Comparable {
    /// Content, and everything that only looks.
    case read
    /// Everything.
    case admin

    package static func < (left: Self, right: Self) -> Bool { left == .read && right == .admin }
}

/// Who may do what.
package struct AccessRules: Sendable {
    /// What a call asks of its caller.
    package enum Need: Hashable, Sendable {
        /// Health: anyone, under any host name.
        case nothing
        /// Content: nothing for assets of public origins, else the `read` scope.
        case content
        case scope(AccessScope)
    }

    private struct Entry: Sendable {
        var digest: [UInt8]
        var scope: AccessScope
    }

    private let entries: [Entry]
    /// Without tokens: whether requests under any host name are served.
    private let allowsAnyHost: Bool

    /// - Parameters:
    ///   - tokens: empty: nobody is asked for one, and only local host names are served.
    ///   - allowUnauthenticated: without tokens, serves requests under any host name all the same.
    package init(tokens: [(token: String, scope: AccessScope)] = [], allowUnauthenticated: Bool = false) {
        entries = tokens.map { Entry(digest: Self.digest($0.token), scope: $0.scope) }
        allowsAnyHost = allowUnauthenticated
    }

    /// Throws `.unauthorized` where a token is missing or unknown, `.forbidden` where its scope is too small, or where,
    /// without tokens, the request comes under a foreign host name (a page that had its name point here).
    package func admit(
        _ need: Need, authorization: String?, host: String?, contentIsPublic: Bool = false
    ) throws(CacheError) {
        guard need != .nothing else { return }
        if entries.isEmpty {
            guard allowsAnyHost || Self.isLocal(host: host) else {
                throw CacheError(.forbidden, "Without tokens only requests to localhost are served.")
            }
            return
        }
        let needed: AccessScope
        switch need {
        case .nothing: return
        case .content:
            if contentIsPublic { return }
            needed = .read
        case .scope(let scope): needed = scope
        }
        guard let given = scope(of: authorization) else {
            throw CacheError(.unauthorized, "A bearer token with the scope \(needed.rawValue) is needed.")
        }
        guard given >= needed else {
            throw CacheError(.forbidden, "The token's scope is \(given.rawValue); this needs \(needed.rawValue).")
        }
    }

    /// Without tokens, pages of other sites must not change anything through a local browser.
    package func admitOrigin(_ origin: String?, isChanging: Bool, isAllowed: (String) -> Bool) throws(CacheError) {
        guard entries.isEmpty, isChanging, let origin, !isAllowed(origin) else { return }
        let host = origin.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: true).last.map(String.init)
        guard Self.isLocal(host: host) else {
            throw CacheError(.forbidden, "Pages of other sites may not change anything here.")
        }
    }

    /// Compares with every token, in a time that does not depend on how much of one was right: digests are compared.
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

    private static func digest(_ token: String) -> [UInt8] { Array(SHA256.hash(data: Array(token.utf8))) }

    /// Whether a `Host` field names this machine, with or without a port.
    package static func isLocal(host: String?) -> Bool {
        guard var name = host?.lowercased()[...] else { return false }
        if let colon = name.lastIndex(of: ":"), name[name.index(after: colon)...].allSatisfy(\.isNumber),
            !name.hasPrefix("[") || name[..<colon].hasSuffix("]")
        {
            name = name[..<colon]
        }
        return name == "localhost" || name == "127.0.0.1" || name == "[::1]"
    }
}
