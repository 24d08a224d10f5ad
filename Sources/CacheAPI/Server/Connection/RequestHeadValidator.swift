import CacheCore
import NIOCore
import NIOHTTP1

/// Channel handler that rejects request heads which the HTTP decoder accepts and RFC 9112 forbids: targets (§3.2),
/// `Host` (§3.2) and transfer codings (§6.1). It also rejects invalid statements of trusted proxies.
///
/// It stands before Hummingbird's codec, which keeps only the first `Host` field. The authority of an absolute target
/// replaces the field (§3.2.2).
final class RequestHeadValidator: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    /// Set by the first rejected head; everything after it is ignored.
    private var isOver = false
    /// Nil without a connection (tests).
    private let client: ConnectionClient?

    init(_ client: ConnectionClient? = nil) { self.client = client }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver else { return }
        guard case .head(var head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
        do throws(CacheError) {
            try Self.checkCodings(head)
            try Self.checkHost(head)
            _ = try client?.client { head.headers[$0] }
            guard let authority = try Self.authority(of: head) else { return context.fireChannelRead(data) }
            head.headers.replaceOrAdd(name: "Host", value: authority)
            context.fireChannelRead(wrapInboundOut(.head(head)))
        } catch {
            isOver = true
            context.fireErrorCaught(error)
        }
    }

    /// Throws `.malformedRequest` unless `chunked` is the last coding and occurs once, and `.notImplemented` for any
    /// other coding (RFC 9112 §6.1, §7).
    private static func checkCodings(_ head: HTTPRequestHead) throws(CacheError) {
        let codings = head.headers[canonicalForm: "Transfer-Encoding"].map { $0.lowercased() }
        guard !codings.isEmpty else { return }
        guard codings.last == "chunked", !codings.dropLast().contains("chunked") else {
            throw CacheError(.malformedRequest, "chunked must be the last transfer coding and occur once.")
        }
        guard codings.count == 1 else {
            throw CacheError(.notImplemented, "The only supported transfer coding is chunked.")
        }
    }

    /// Throws `.malformedRequest` unless the request has exactly one valid `Host` (HTTP/1.0: at most one).
    private static func checkHost(_ head: HTTPRequestHead) throws(CacheError) {
        let hosts = head.headers["Host"]
        guard hosts.count < 2, hosts.count == 1 || head.version == .http1_0 else {
            throw CacheError(.malformedRequest, "The request must have one Host field; it has \(hosts.count).")
        }
        guard hosts.allSatisfy(isHost) else {
            throw CacheError(.malformedRequest, "The Host field must be a host name or address with an optional port.")
        }
    }

    /// The authority of an absolute target, without user information; nil for a path and for `OPTIONS *`.
    ///
    /// Throws `.malformedRequest` for any other target.
    private static func authority(of head: HTTPRequestHead) throws(CacheError) -> String? {
        let target = head.uri
        if target.utf8.first == UInt8(ascii: "/") || (target == "*" && head.method == .OPTIONS) { return nil }
        let scheme = ["http://", "https://"].first { target.prefix($0.count).lowercased() == $0 }
        guard let scheme else {
            throw CacheError(.malformedRequest, "The request target must be a path or an http or https URL.")
        }
        let text = target.dropFirst(scheme.count).prefix { !"/?#".contains($0) }
        let authority = text.split(separator: "@", omittingEmptySubsequences: false).last.map(String.init) ?? ""
        guard !authority.isEmpty, isHost(authority) else {
            throw CacheError(.malformedRequest, "The request target's host is missing or invalid.")
        }
        return authority
    }

    /// Whether the text is `uri-host [ ":" port ]` (RFC 3986 §3.2.2) with a host that is not empty, as http requires
    /// (RFC 9110 §4.2.1).
    static func isHost(_ text: String) -> Bool {
        var host = Array(text.utf8)[...]
        if let colon = host.lastIndex(of: UInt8(ascii: ":")), !host[colon...].contains(UInt8(ascii: "]")) {
            let port = host[(colon + 1)...]
            guard port.allSatisfy(FieldText.isDigit),
                port.isEmpty || UInt16(String(decoding: port, as: UTF8.self)) != nil
            else {
                return false
            }
            host = host[..<colon]
        }
        guard host.first == UInt8(ascii: "[") else { return !host.isEmpty && host.allSatisfy(isNameByte) }
        return host.count > 4 && host.last == UInt8(ascii: "]")
            && host.dropFirst().dropLast().allSatisfy { isNameByte($0) || $0 == UInt8(ascii: ":") }
    }

    /// Whether the byte is an unreserved character, a sub-delimiter or a percent sign (RFC 3986 §3.2.2 `reg-name`).
    private static func isNameByte(_ byte: UInt8) -> Bool {
        FieldText.isDigit(byte) || FieldText.isLetter(byte) || "-._~%!$&'()*+,;=".utf8.contains(byte)
    }
}

@available(*, unavailable)
extension RequestHeadValidator: Sendable {}
