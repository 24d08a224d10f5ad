import CacheCore
import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1
import NIOHTTPCompression

/// Compression (gzip or deflate) of API documents and the dashboard; never of content.
enum ResponseCompression {
    /// The minimum size in bytes of a body: shorter ones fit into one packet anyway.
    private static let leastBytes = 1024

    private static let types: Set<String> = [
        "application/json", "application/problem+json", "application/yaml", "application/openmetrics-text",
        "text/plain", "text/html", "text/css", "text/javascript",
    ]

    /// Marks the response if it may be compressed: a text of known length outside of content, without a strong entity
    /// tag, which would name two different bodies.
    static func mark(_ response: inout Response, to request: Request) {
        guard request.method != .head, let length = response.body.contentLength, length >= leastBytes,
            let type = response.headers[.contentType], types.contains(MediaType.essence(type)),
            response.headers[.cacheStatus] == nil, response.headers[.contentEncoding] == nil,
            response.headers[.eTag]?.hasPrefix("W/") ?? true
        else { return }
        response.headers[.compressionMark] = "1"
        response.headers[values: .vary].append("Accept-Encoding")
    }

    /// The handlers between Hummingbird and the handlers that send content.
    static func makeHandlers() -> [any RemovableChannelHandler] {
        let compressor = HTTPResponseCompressor(initialByteBufferCapacity: 0) { head, isSupported in
            let mark = HTTPField.Name.compressionMark.rawName
            let isMarked = head.headers.contains(name: mark)
            if isMarked { head.headers.remove(name: mark) }
            // The length of the uncompressed body. The compressor does not remove it if the head is flushed alone.
            if isMarked, isSupported {
                head.headers.remove(name: "Content-Length")
                head.headers.replaceOrAdd(name: "Transfer-Encoding", value: "chunked")
            }
            return isMarked ? .compressIfPossible : .doNotCompress
        }
        return [compressor, UnrequestedResponseHandler()]
    }
}

/// Closes the connection at a response without a request. The compressor would trap, because it takes the request's
/// `Accept-Encoding` from a queue.
private final class UnrequestedResponseHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart

    /// Requests without a response head.
    private var pending = 0

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .head = unwrapInboundIn(data) { pending += 1 }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .head = unwrapOutboundIn(data) { pending -= 1 }
        guard pending >= 0 else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return context.close(promise: nil)
        }
        context.write(data, promise: promise)
    }
}
