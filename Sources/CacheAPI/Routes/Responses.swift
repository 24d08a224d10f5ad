import CacheCore
import HTTPTypes
import NIOCore

/// The response of a route.
struct Response: Sendable {
    var status: HTTPResponse.Status
    var headers: HTTPFields
    var body: ResponseBody

    init(status: HTTPResponse.Status, headers: HTTPFields = [:], body: ResponseBody = .empty) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The fields with the length of an empty body, where a body is possible.
    var framedHeaders: HTTPFields {
        guard case .empty = body, ![204, 304].contains(status.code) else { return headers }
        var headers = headers
        headers[.contentLength] = "0"
        return headers
    }
}

extension Response {
    /// A response with a JSON document and a final line feed, which helps in terminals.
    static func json(
        _ document: some Encodable, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]
    ) -> Response {
        var headers = headers
        headers[.contentType] = "application/json"
        headers[.cacheControl] = "no-store"
        return Response(status: status, headers: headers, body: .document(ByteBuffer(json: document)))
    }

    /// A response with one page of a list. `next` is the cursor of the next page; nil on the last one. `total` is the
    /// number of entries of all pages; nil if it was not requested.
    static func page(_ items: [some Encodable], next: String?, total: Int? = nil) -> Response {
        .json(PageDocument(items, next: next, total: total))
    }

    /// A response with a text of the media type `type`.
    static func text(_ text: String, type: String) -> Response {
        Response(
            status: .ok, headers: [.contentType: type, .cacheControl: "no-store"],
            body: .document(ByteBuffer(string: text)))
    }

    /// The response to a GET of a document with a revision: 200 or 304. Throws `.preconditionFailed` (412).
    static func revised(
        _ document: some Encodable, _ revision: Int64, to request: Request
    ) throws(CacheError) -> Response {
        let headers = entityTag(revision)
        guard try RevisionConditions(request).isNotModified(at: revision) else {
            return .json(document, headers: headers)
        }
        return Response(status: .notModified, headers: headers)
    }

    /// The `ETag` field for a revision.
    static func entityTag(_ revision: Int64) -> HTTPFields { [.eTag: "\"\(revision)\""] }
}

extension ByteBuffer {
    /// A document as JSON text with a final line feed.
    init(json document: some Encodable) {
        self.init(bytes: document.jsonBytes)
        writeInteger(UInt8(ascii: "\n"))
    }
}
