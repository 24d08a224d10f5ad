import HTTPTypes

/// The table of all routes. The router and ``ContentTarget`` are built from the same lists, so they cannot differ.
package struct RouteTable: Sendable {
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

    /// The names of the methods of all paths.
    static let methods = Set(completed(Set(lines.map(\.method))).map(\.rawValue))

    /// The methods of a path as a value of `Allow`; nil for an unknown path.
    package func methods(of path: String) -> String? {
        let methods = Set(Self.lines(of: path).map(\.method))
        return methods.isEmpty ? nil : Self.list(methods)
    }

    /// The pattern of a path; nil for an unknown path.
    func pattern(of path: String) -> String? { Self.lines(of: path).first?.pattern }

    /// The routes of a path: those of the pattern with the fewest parameters that matches.
    private static func lines(of path: String) -> [RouteLine] {
        let segments = path.split(separator: "/")
        let matching = lines.filter { $0.matches(segments) }
        let fewest = matching.map { $0.parts.count(where: RouteLine.isParameter) }.min()
        return matching.filter { $0.parts.count(where: RouteLine.isParameter) == fewest }
    }

    /// The methods of all paths as a value of `Allow`.
    var allMethods: String { Self.methods.sorted().joined(separator: ", ") }

    /// The methods as a sorted, comma-separated list.
    private static func list(_ methods: Set<HTTPRequest.Method>) -> String {
        completed(methods).map(\.rawValue).sorted().joined(separator: ", ")
    }

    /// Adds the implied methods: OPTIONS for every path, HEAD for every path with GET.
    private static func completed(_ methods: Set<HTTPRequest.Method>) -> Set<HTTPRequest.Method> {
        methods.union(methods.contains(.get) ? [.head, .options] : [.options])
    }
}
