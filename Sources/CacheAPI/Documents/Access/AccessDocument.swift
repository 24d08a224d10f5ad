import CacheCore
import HTTPTypes
import ReaderAccess

/// The permissions of a caller, derived from ``RouteTable``: the `Access` schema.
package struct AccessDocument: Codable {
    /// The `AccessToken` schema.
    package struct Token: Codable {
        package var id, scope: String
        var origins, prefixes: [String]?
        var expiresAt: Timestamp?
    }

    /// The `AccessOperation` schema.
    package struct Operation: Codable {
        package var method, path: String
        var limited: Bool
    }

    /// Nil: the service requires no token.
    package var token: Token?
    /// The prefixes of asset keys with which a limited token can list assets; nil without limits.
    package var assetPrefixes: [String]?
    package var operations: [Operation]
}

extension AccessDocument {
    init(_ reader: Reader?) {
        self.init(
            token: reader.map { reader in
                Token(
                    id: reader.id, scope: reader.scope.rawValue, origins: reader.limits.origins?.sorted(),
                    prefixes: reader.limits.prefixes, expiresAt: reader.expiresAt)
            }, assetPrefixes: reader?.assetPrefixes,
            operations: RouteTable.lines.filter { $0.isPermitted(to: reader) }.map { line in
                Operation(method: line.method.rawValue, path: line.pattern, limited: line.isLimited(for: reader))
            })
    }
}

extension RouteLine {
    /// Whether the reader may call the route, perhaps for some assets only. Nil: the service requires no token.
    func isPermitted(to reader: Reader?) -> Bool {
        guard let reader else { return true }
        return need.isMet(by: reader) && !(reader.isLimited && limits == .refused)
    }

    /// Whether the route is restricted to the reader's origins and prefixes.
    func isLimited(for reader: Reader?) -> Bool { (reader?.isLimited ?? false) && limits != .unaffected }
}

extension Reader {
    /// The prefixes of asset keys that select parts of the reader's assets in lists and purges; nil without limits.
    var assetPrefixes: [String]? {
        guard isLimited else { return nil }
        let mounts = (limits.origins ?? []).sorted().map { "/o/\($0)/" }
        return ((limits.prefixes ?? []) + mounts).filter { limits.permits(allBelow: $0) }
    }
}
