import CacheCore
import CacheEngine
import HTTPTypes
import NIOCore

extension Request {
    /// The media types of a merge patch: its own (RFC 7396 §4) and plain JSON.
    static let mergePatchTypes = ["application/json", "application/merge-patch+json"]

    /// Parses and decodes long bodies, one at a time: they would delay the requests on the shared executor.
    private static let parser = ParserExecutor(label: "larder.bodies")
    /// The length of a body above which it is parsed there.
    private static let longBytes = 64 << 10

    /// Reads the body as JSON and decodes it. `decode` gets the tree and the bytes. The trees of two long bodies never
    /// exist at once, so that its result must not contain a long tree.
    ///
    /// Throws `.unsupportedMediaType` for another `Content-Type`, `.payloadTooLarge` above `limit` bytes, and
    /// `.malformedRequest` for an empty body or invalid JSON, ``RefusedBody``, and
    /// the errors of `decode`.
    func json<Value: Sendable>(
        upTo limit: Int, types: [String] = ["application/json"],
        decode: @escaping @Sendable (_ json: JSON, _ bytes: [UInt8]) throws -> Value
    ) async throws -> Value {
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
        guard bytes.count > Self.longBytes else { return try decode(JSONParser.parse(bytes), bytes) }
        // Without a suspension: the executor starts no other body before the tree is released.
        return try await withTaskExecutorPreference(Self.parser) { [bytes] in
            try decode(JSONParser.parse(bytes), bytes)
        }
    }

    /// Reads the query. Throws `.invalidField` for parameters that are not in `keys`.
    func query(accepting keys: [String]) throws(CacheError) -> QueryFields {
        try QueryFields(queryText, accepting: keys)
    }
}
