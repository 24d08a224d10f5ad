import CacheCore
import HTTPTypes

/// Routes for the files of the dashboard. They need no token: the page asks for one and calls the API with it.
struct DashboardController: Controller {
    private let files: [String: StaticDocument]

    init(files: [APISettings.DashboardFile]) {
        self.files = Dictionary(files.map { ($0.name, Self.document($0)) }) { $1 }
    }

    private static func document(_ file: APISettings.DashboardFile) -> StaticDocument {
        StaticDocument(
            file.text, type: type(of: file.name),
            fields: [
                .contentSecurityPolicy: policy, .xContentTypeOptions: "nosniff", .referrerPolicy: "no-referrer",
            ])
    }

    private static func type(of name: String) -> String {
        switch name.split(separator: ".").last {
        case "html": "text/html; charset=utf-8"
        case "css": "text/css; charset=utf-8"
        case "js": "text/javascript; charset=utf-8"
        default: "application/octet-stream"
        }
    }

    /// Only the page's own files and the API: no inline code, no other host, no frame.
    private static let policy = """
        default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
        frame-ancestors 'none'; base-uri 'none'; form-action 'none'
        """

    static let routes: [Route<Self>] = [
        Route(.get, "/", .nothing) { controller, request, _ in
            guard !controller.files.isEmpty, request.prefers("text/html", over: "application/json") else {
                throw Self.missing
            }
            return Response(status: .found, headers: [.location: "/ui/"])
        },
        Route(.get, "/ui", .nothing) { controller, request, _ in
            // The references of the page are relative.
            guard request.path.hasSuffix("/") else {
                return Response(status: .movedPermanently, headers: [.location: "/ui/"])
            }
            return try controller.file("index.html", request)
        },
        Route(.get, "/ui/{path}", .nothing) { controller, request, _ in
            try controller.file(String(request.path.dropFirst("/ui/".count)), request)
        },
    ]

    private static let missing = CacheError(.notFound, "There is nothing at this path.")

    private func file(_ name: String, _ request: Request) throws(CacheError) -> Response {
        guard let file = files[name] else { throw Self.missing }
        return file.response(to: request)
    }
}
