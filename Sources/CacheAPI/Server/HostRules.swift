import CacheCore
import NIOCore
import NIOHTTP1

/// Sees to it that every request names exactly one host (RFC 9112 §3.2): stands in front of the translation that keeps
/// the first `Host` field alone.
///
/// The authority of an absolute target takes the field's place (§3.2.2).
final class HostRules: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private var isOver = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver else { return }
        guard case .head(var head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
        let count = head.headers[canonicalForm: "Host"].count
        guard count < 2, count == 1 || head.version == .http1_0 else {
            isOver = true
            context.fireErrorCaught(CacheError(.malformedRequest, "A request has one Host field; here are \(count)."))
            return
        }
        if let authority = Self.authority(of: head.uri) { head.headers.replaceOrAdd(name: "Host", value: authority) }
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    /// The authority of an absolute target, without user info; nil where the target has another form.
    static func authority(of target: String) -> String? {
        let scheme = ["http://", "https://"].first { target.prefix($0.count).lowercased() == $0 }
        guard let scheme else { return nil }
        let authority = target.dropFirst(scheme.count).prefix { !"/?#".contains($0) }
        return authority.split(separator: "@", omittingEmptySubsequences: false).last.map(String.init)
    }
}

@available(*, unavailable)
extension HostRules: Sendable {}
