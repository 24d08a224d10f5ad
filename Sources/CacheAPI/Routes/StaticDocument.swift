import CacheCore
import Cryptography
import HTTPTypes
import NIOCore

/// A text that stays the same while the process runs, with an entity tag.
struct StaticDocument: Sendable {
    private let body: ByteBuffer
    private let fields: HTTPFields
    /// The opaque part of the entity tag.
    private let tag: String

    /// - Parameter fields: Further header fields.
    init(_ text: String, type: String, fields: HTTPFields = [:]) {
        body = ByteBuffer(string: text)
        tag = HashFunction.sha256.digest(of: text.utf8).prefix(8).hexDigits
        var fields = fields
        fields[.contentType] = type
        // Weak, because a compressed response has the same tag.
        fields[.eTag] = "W/\"\(tag)\""
        fields[.cacheControl] = "no-cache"
        self.fields = fields
    }

    /// The response to GET: 200, or 304 if the client has the text.
    func response(to request: Request) -> Response {
        let known = request.headers[values: .ifNoneMatch].flatMap({ FieldText.members(of: $0, escapes: false) })
        if known.contains(where: { $0 == "*" || EntityTag($0)?.opaque == tag }) {
            return ResponseCompression.notModified(fields, of: body)
        }
        return Response(status: .ok, headers: fields, body: .document(body))
    }
}
