import CacheCore
import Crypto
import HTTPTypes
import Hummingbird
import NIOCore

/// Routes for the files of the dashboard. They need no token: the page asks for one and calls the API with it.
struct DashboardController: Controller {
    /// One file with its header fields.
    private struct File {
        let body: ByteBuffer
        let fields: HTTPFields
        /// The opaque part of the entity tag.
        let tag: String

        init(_ file: APISettings.DashboardFile) {
            body = ByteBuffer(string: file.text)
            tag = SHA256.hash(data: Array(file.text.utf8)).prefix(8).map {
                ($0 < 16 ? "0" : "") + String($0, radix: 16)
            }
            .joined()
            fields = [
                // Weak, because a compressed response has the same tag.
                .contentType: Self.type(of: file.name), .eTag: "W/\"\(tag)\"", .cacheControl: "no-cache",
                .contentSecurityPolicy: Self.policy, .xContentTypeOptions: "nosniff",
                .referrerPolicy: "no-referrer",
            ]
        }

        private static func type(of name: String) -> String {
            switch name.split(separator: ".").last {
            case "html": "text/html; charset=utf-8"
            case "css": "text/css; charset=utf-8"
            case "js": "text/javascript; charset=utf-8"
            case "svg": "image/svg+xml"
            default: "application/octet-stream"
            }
        }

        /// Only the page's own files and the API: no inline code, no other host, no frame.
        private static let policy = """
            default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
            frame-ancestors 'none'; base-uri 'none'; form-action 'none'
            """
    }

    private let files: [String: File]

    init(files: [APISettings.DashboardFile]) {
        self.files = Dictionary(files.map { ($0.name, File($0)) }) { $1 }
    }

    static let routes: [Route<Self>] = [
        Route(.get, "/", .nothing) { controller, request, _ in
            guard !controller.files.isEmpty, request.accepts("text/html") else { throw Self.missing }
            return Response(status: .found, headers: [.location: "/ui/"])
        },
        Route(.get, "/ui", .nothing) { controller, request, _ in
            // The references of the page are relative.
            guard request.uri.path.hasSuffix("/") else {
                return Response(status: .movedPermanently, headers: [.location: "/ui/"])
            }
            return try controller.file("index.html", request)
        },
        Route(.get, "/ui/{path}", .nothing) { controller, request, _ in
            try controller.file(String(request.uri.path.dropFirst("/ui/".count)), request)
        },
    ]

    private static let missing = CacheError(.notFound, "There is nothing at this path.")

    /// The response with a file: 200, or 304 if the client has it.
    private func file(_ name: String, _ request: Request) throws(CacheError) -> Response {
        guard let file = files[name] else { throw Self.missing }
        let known = request.headers[values: .ifNoneMatch].flatMap({ FieldText.members(of: $0, escapes: false) })
        if known.contains(where: { $0 == "*" || EntityTag($0)?.opaque == file.tag }) {
            return Response(status: .notModified, headers: file.fields)
        }
        return Response(status: .ok, headers: file.fields, body: .init(byteBuffer: file.body))
    }
}
