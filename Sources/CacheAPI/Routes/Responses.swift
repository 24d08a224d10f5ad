import CacheCore
import HTTPTypes
import Hummingbird
import NIOCore

extension Response {
    /// A response with a JSON document and a final line feed, which helps in terminals.
    static func json(_ json: JSON, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) -> Response {
        var headers = headers
        headers[.contentType] = "application/json"
        headers[.cacheControl] = "no-store"
        return Response(status: status, headers: headers, body: .init(byteBuffer: ByteBuffer(string: json.text + "\n")))
    }

    /// A response with one page of a list. `next` is the cursor of the next page; nil on the last one. `total` is the
    /// number of entries of all pages; nil if it was not requested.
    static func page(_ items: [JSON], next: String?, total: Int? = nil) -> Response {
        let members: [JSON.Member] = [
            .init("items", .array(items)), .init("nextCursor", .optional(next, JSON.string)),
        ]
        return .json(.object(members + (total.map { [.init("total", .count($0))] } ?? [])))
    }

    /// A response with a text of the media type `type`.
    static func text(_ text: String, type: String) -> Response {
        Response(
            status: .ok, headers: [.contentType: type, .cacheControl: "no-store"],
            body: .init(byteBuffer: ByteBuffer(string: text)))
    }

    /// The response to a GET of a document with a revision: 200 or 304. Throws `.preconditionFailed` (412).
    static func revised(_ json: JSON, _ revision: Int64, to request: Request) throws(CacheError) -> Response {
        let headers = entityTag(revision)
        guard try RevisionConditions(request).isNotModified(at: revision) else { return .json(json, headers: headers) }
        return Response(status: .notModified, headers: headers)
    }

    /// The `ETag` field for a revision.
    static func entityTag(_ revision: Int64) -> HTTPFields { [.eTag: "\"\(revision)\""] }
}
