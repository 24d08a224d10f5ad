import CacheCore
import HTTPTypes
import NIOHTTP1
import NIOHTTPTypesHTTP1
import ReaderAccess

/// A request as it was received, with everything that its response depends on but the body.
struct RequestCall: Sendable {
    let method: HTTPRequest.Method
    /// The target in origin form without its signature.
    let target: String
    /// The length of the target with its signature.
    let targetBytes: Int
    /// The value of `Host`.
    let host: String?
    let fields: HTTPFields
    let credentials: RequestCredentials
    /// Nil without a connection (tests).
    let client: RequestClient?
    let requestID: String
    /// The time since the request was received.
    let stopwatch: @Sendable () -> Duration

    var isHead: Bool { method == .head }

    /// The path without query and fragment.
    var path: String { RequestTarget.withoutQuery(target) }

    /// The request as the access log names it. Without `inFull` it has no field of the request.
    func logged(_ content: RequestLogContext.Content, inFull: Bool) -> LoggedRequest {
        LoggedRequest(
            kind: content.kind, method: method.rawValue, path: target, asset: content.asset,
            userAgent: inFull ? fields[.userAgent] : nil, referer: inFull ? fields[.referer] : nil,
            token: content.reader?.id)
    }

    /// The client's own request identifier if it is safe to log: 1 to 64 ASCII letters, digits, `.`, `_` and `-`. Else
    /// nil.
    static func accepted(_ id: String?) -> String? {
        guard let id, (1...64).contains(id.utf8.count) else { return nil }
        let isPlain = id.utf8.allSatisfy { byte in
            (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || byte == 45
                || byte == 46 || byte == 95
        }
        return isPlain ? id : nil
    }
}
