import CacheCore
import HTTPTypes
import ReaderAccess

/// The permissions of a caller: its token and the operations that it permits, derived from ``RouteTable``.
struct AccessReport: Sendable {
    /// Nil: the service requires no token.
    private let reader: Reader?

    init(_ reader: Reader?) { self.reader = reader }

    var json: JSON {
        [
            "token": .optional(reader, Self.token),
            "assetPrefixes": .optional(reader?.assetPrefixes) { .array($0.map(JSON.string)) },
            "operations": .array(
                RouteTable.lines.filter { $0.isPermitted(to: reader) }.map { line in
                    [
                        "method": .string(line.method.rawValue), "path": .string(line.pattern),
                        "limited": .bool(line.isLimited(for: reader)),
                    ]
                }),
        ]
    }

    private static func token(_ reader: Reader) -> JSON {
        [
            "id": .string(reader.id), "scope": .string(reader.scope.rawValue),
            "origins": .optional(reader.limits.origins) { .array($0.sorted().map(JSON.string)) },
            "prefixes": .optional(reader.limits.prefixes) { .array($0.map(JSON.string)) },
            "expiresAt": .instant(reader.expiresAt),
        ]
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
