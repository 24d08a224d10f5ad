import CacheCore
import HTTPTypes
import Hummingbird
import NIOCore

extension Response {
    /// A JSON document, with a line's end for terminals.
    static func json(_ json: JSON, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) -> Response {
        var headers = headers
        headers[.contentType] = "application/json"
        headers[.cacheControl] = "no-store"
        return Response(status: status, headers: headers, body: .init(byteBuffer: ByteBuffer(string: json.text + "\n")))
    }

    /// One page of a list.
    static func page(_ items: [JSON], next: String?) -> Response {
        .json(["items": .array(items), "nextCursor": .optional(next, JSON.string)])
    }

    static func text(_ text: String, type: String) -> Response {
        Response(
            status: .ok, headers: [.contentType: type, .cacheControl: "no-store"],
            body: .init(byteBuffer: ByteBuffer(string: text)))
    }

    /// The document in `revision`; 304 or 412 where the request's conditions say so.
    static func revised(_ json: JSON, _ revision: Int64, to request: Request) throws(CacheError) -> Response {
        let headers = entityTag(revision)
        guard try RevisionConditions(request).isNotModified(at: revision) else { return .json(json, headers: headers) }
        return Response(status: .notModified, headers: headers)
    }

    /// Header fields for a document of which `revision` is the version.
    static func entityTag(_ revision: Int64) -> HTTPFields { [.eTag: "\"\(revision)\""] }
}
