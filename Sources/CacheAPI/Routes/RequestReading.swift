import CacheCore
import CacheEngine
import Hummingbird
import NIOCore

extension Request {
    /// The media types of a merge patch: its own (RFC 7396 §4) and plain JSON.
    static let mergePatchTypes = ["application/json", "application/merge-patch+json"]

    /// Parses long bodies, one at a time: they would delay the requests on the shared executor.
    private static let parser = ParserExecutor(label: "larder.bodies")
    /// The length of a body above which it is parsed there.
    private static let longBytes = 64 << 10

    /// Reads the body as JSON. Returns the value and the bytes.
    ///
    /// Throws `.unsupportedMediaType` for another `Content-Type`, `.payloadTooLarge` above `limit` bytes, and
    /// `.malformedRequest` for an empty body or invalid JSON, and ``RefusedBody``.
    func json(upTo limit: Int, types: [String] = ["application/json"]) async throws -> (json: JSON, bytes: [UInt8]) {
        let declared = headers[.contentType].map { MediaType.essence($0) }
        guard let declared, types.contains(declared) else {
            throw CacheError(.unsupportedMediaType, "The body must be \(types.joined(separator: " or ")).")
        }
        if let length = headers[.contentLength].flatMap({ Int($0) }), length > limit {
            throw CacheError(.payloadTooLarge, "The body is longer than \(limit) bytes.")
        }
        var bytes: [UInt8] = []
        for try await part in body {
            guard bytes.count + part.readableBytes <= limit else {
                throw CacheError(.payloadTooLarge, "The body is longer than \(limit) bytes.")
            }
            bytes.append(contentsOf: part.readableBytesView)
        }
        guard !bytes.isEmpty else { throw CacheError(.malformedRequest, "The body is empty.") }
        guard bytes.count > Self.longBytes else { return (try JSONParser.parse(bytes), bytes) }
        let json = try await withTaskExecutorPreference(Self.parser) { [bytes] in try JSONParser.parse(bytes) }
        return (json, bytes)
    }

    /// Reads the query. Throws `.invalidField` for parameters that are not in `keys`.
    func query(accepting keys: [String]) throws(CacheError) -> QueryFields {
        try QueryFields(uri.query, accepting: keys)
    }
}
