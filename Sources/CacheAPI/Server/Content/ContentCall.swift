import CacheCore
import CacheEngine
import HTTPTypes
import NIOHTTP1
import NIOHTTPTypesHTTP1
import ReaderAccess

/// A request for content, with everything that its response depends on.
struct ContentCall: Sendable {
    let isHead: Bool
    /// The target in origin form without its signature.
    let target: String
    let content: ContentTarget
    /// The value of `Host`.
    let host: String?
    let fields: HTTPFields
    let credentials: RequestCredentials
    /// Nil without a connection (tests).
    let client: RequestClient?
    let requestID: String
    /// The time since the request was received.
    let stopwatch: @Sendable () -> Duration

    /// Whether the method is one of content.
    static func isMethod(_ method: HTTPMethod) -> Bool { method == .GET || method == .HEAD }

    var method: HTTPRequest.Method { isHead ? .head : .get }

    /// The path without query and fragment.
    var path: String { RequestTarget.withoutQuery(target) }

    /// The request as the access log names it. Without `inFull` it has only method and path.
    func logged(by reader: Reader?, inFull: Bool) -> LoggedRequest {
        guard inFull else { return LoggedRequest(method: method.rawValue, path: target) }
        return LoggedRequest(
            method: method.rawValue, path: target, client: client?.text, userAgent: fields[.userAgent],
            referer: fields[.referer], token: reader?.id)
    }

    /// Whether `CDN-Loop` (RFC 8586) contains the service `name`; it is lower case.
    func isLoop(to name: String) -> Bool {
        fields[values: .cdnLoop].flatMap { FieldText.members(of: $0) }.contains { member in
            member.split(whereSeparator: { $0 == ";" || $0 == " " || $0 == "\t" }).first?.lowercased() == name
        }
    }

    /// Whether another node of the fleet asks for cached bytes of a known asset.
    var isOfPeer: Bool {
        if case .asset = content { fields.contains(.larderPeer) } else { false }
    }

    /// Whether the client asks for a digest (RFC 9530 §4); it needs a wait.
    var wantsDigest: Bool { fields.contains(.wantContentDigest) || fields.contains(.wantReprDigest) }

    /// The time limit of `Larder-Timeout`; nil without the field. Throws `.malformedRequest` for an invalid value.
    func timeout() throws(CacheError) -> Duration? {
        guard let text = fields[.larderTimeout] else { return nil }
        guard let seconds = Double(text), (0.001...3600).contains(seconds) else {
            throw CacheError(.malformedRequest, "Larder-Timeout must be a number of seconds from 0.001 to 3600.")
        }
        return .seconds(seconds)
    }
}
