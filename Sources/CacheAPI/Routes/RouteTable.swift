import HTTPTypes

/// Every call there is; the router is built from the same lists.
package struct RouteTable: Sendable {
    package static let lines: [RouteLine] =
        ContentController.routes.map(\.line) + ProbeController.routes.map(\.line) + AssetController.routes.map(\.line)
        + FillController.routes.map(\.line) + JobController.routes.map(\.line) + StatsController.routes.map(\.line)
        + PolicyController.routes.map(\.line)
        + EvictionController.routes.map(\.line) + ScrubController.routes.map(\.line)
        + OriginController.routes.map(\.line)
        + ServiceController.routes.map(\.line)

    package init() {}

    /// The names of the methods of all paths together.
    static let methods = Set(completed(Set(lines.map(\.method))).map(\.rawValue))

    /// The methods of a path as an `Allow` field names them; nil where nothing is there.
    package func methods(of path: String) -> String? {
        let segments = path.split(separator: "/")
        let methods = Set(Self.lines.filter { $0.matches(segments) }.map(\.method))
        return methods.isEmpty ? nil : Self.list(methods)
    }

    /// The methods of all paths together.
    package var allMethods: String { Self.methods.sorted().joined(separator: ", ") }

    private static func list(_ methods: Set<HTTPRequest.Method>) -> String {
        completed(methods).map(\.rawValue).sorted().joined(separator: ", ")
    }

    /// With the methods that every path has, or every path with GET.
    private static func completed(_ methods: Set<HTTPRequest.Method>) -> Set<HTTPRequest.Method> {
        methods.union(methods.contains(.get) ? [.head, .options] : [.options])
    }
}
