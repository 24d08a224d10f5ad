import CacheCore
import Hummingbird
import NIOCore

extension Request {
    /// The body as JSON; throws 415 where it is not declared as such, 413 where it is too long, 400 where it is none.
    func json(upTo limit: Int, types: [String] = ["application/json"]) async throws -> (json: JSON, bytes: [UInt8]) {
        let declared = headers[.contentType].map { MediaType.essence($0) }
        guard let declared, types.contains(declared) else {
            throw CacheError(.unsupportedMediaType, "The body must be \(types.joined(separator: " or ")).")
        }
        if let length = headers[.contentLength].flatMap({ Int($0) }), length > limit {
            throw CacheError(.payloadTooLarge, "The body is longer than \(limit) bytes.")
        }
        let bytes = Array(try await body.collect(upTo: limit).readableBytesView)
        guard !bytes.isEmpty else { throw CacheError(.malformedRequest, "The body is empty.") }
        return (try JSONParser.parse(bytes), bytes)
    }

    /// The query's parameters, all of which must be among `keys`.
    func query(accepting keys: [String]) throws(CacheError) -> QueryFields {
        try QueryFields(uri.query, accepting: keys)
    }

    /// The revision that `If-Match` asks for; nil where it asks for none. `current` decides between several.
    func expectedRevision(_ current: () throws(CacheError) -> Int64) throws(CacheError) -> Int64? {
        guard let condition = headers[.ifMatch] else { return nil }
        let members = condition.split(whereSeparator: { $0 == "," || $0 == " " || $0 == "\t" })
        if members == ["*"] { return nil }
        let revisions = members.compactMap { member -> Int64? in
            guard let tag = EntityTag(member), !tag.isWeak else { return nil }
            return Int64(tag.opaque)
        }
        if revisions.count == 1 { return revisions[0] }
        let current = try current()
        guard revisions.contains(current) else {
            throw CacheError(.preconditionFailed, "The revision is \(current) by now.")
        }
        return current
    }
}
