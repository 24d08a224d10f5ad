import CacheCore
import HTTPTypes

/// The table of all routes. The router and ``ContentTarget`` are built from the same lists, so they cannot differ.
package enum RouteTable {
    /// All routes, without the implied HEAD and OPTIONS.
    package static let lines: [RouteLine] =
        ContentTarget.lines + ProbeController.routes.map(\.line) + ListingController.routes.map(\.line)
        + AssetController.routes.map(\.line)
        + FillController.routes.map(\.line) + JobController.routes.map(\.line)
        + ScheduleController.routes.map(\.line) + StatsController.routes.map(\.line)
        + PolicyController.routes.map(\.line)
        + EvictionController.routes.map(\.line) + ScrubController.routes.map(\.line)
        + EncryptionController.routes.map(\.line)
        + FleetController.routes.map(\.line)
        + OriginController.routes.map(\.line)
        + SignatureController.routes.map(\.line)
        + EventController.routes.map(\.line) + ServiceController.routes.map(\.line)
        + ConfigurationController.routes.map(\.line)
        + DashboardController.routes.map(\.line) + AccessController.routes.map(\.line)
        + TokenController.routes.map(\.line)
        + WebhookController.routes.map(\.line) + RequestController.routes.map(\.line)

    /// The methods of all paths.
    static let methods = completed(Set(lines.map(\.method)))

    /// The names of ``methods``.
    static let methodNames = Set(methods.map(\.rawValue))

    /// ``methods`` as a value of `Allow`.
    static let allow = PathPattern.list(methods)

    /// The error of a request with another method.
    static var unknownMethod: CacheError {
        CacheError(.notImplemented, "The method is not supported; supported: \(allow).")
    }

    /// All patterns; those with fewer parameters first, so that a literal segment precedes a parameter.
    private static let patterns: [PathPattern] = Dictionary(grouping: lines, by: \.pattern)
        .map { PathPattern($0.key, methods: completed(Set($0.value.map(\.method)))) }
        .sorted { ($0.parameterCount, $0.text) < ($1.parameterCount, $1.text) }

    /// The pattern of a path: of those that match, the one with the fewest parameters; nil for an unknown path.
    static func pattern(of path: String) -> PathPattern? {
        let segments = path.split(separator: "/")
        guard let pattern = patterns.first(where: { $0.matches(segments) }), pattern.accepts(path) else { return nil }
        return pattern
    }

    /// Adds the implied methods: OPTIONS for every path, HEAD for every path with GET.
    private static func completed(_ methods: Set<HTTPRequest.Method>) -> Set<HTTPRequest.Method> {
        methods.union(methods.contains(.get) ? [.head, .options] : [.options])
    }
}
