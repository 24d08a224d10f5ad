import CacheCore
import DequeModule
import HTTPTypes
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
        guard case .document(let bytes) = response.body, bytes.readableBytes >= leastBytes,
            let type = response.headers[.contentType], types.contains(MediaType.essence(type)),
            response.headers[.cacheStatus] == nil, response.headers[.contentEncoding] == nil,
            response.headers[.eTag]?.hasPrefix("W/") ?? true
        else { return }
        // The response to HEAD has the fields of that to GET.
        response.headers.vary(by: "Accept-Encoding")
        if request.method != .head { response.headers[.compressionMark] = "1" }
    }

    /// The fields of the response 304 in place of a compressible one (RFC 9110 §15.4.5).
    static func notModified(_ fields: HTTPFields, of body: ByteBuffer) -> Response {
        var fields = fields
        if body.readableBytes >= leastBytes, let type = fields[.contentType], types.contains(MediaType.essence(type)) {
            fields.vary(by: "Accept-Encoding")
        }
        return Response(status: .notModified, headers: fields)
    }

    /// The handlers between those of content and ``APIHandler``.
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
        return [compressor, CompressionPolicyHandler()]
    }
}

/// Decides from the request whether a marked response is compressed: only for HTTP/1.1, which has chunked framing, and if
/// `Accept-Encoding` permits gzip (RFC 9110 §12.5.3). The compressor's own reading of the field is less strict.
///
/// Closes the connection at a response without a request: the compressor would trap, because it takes the request's
/// `Accept-Encoding` from a queue.
private final class CompressionPolicyHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// For each request without a response head: whether its response may be compressed.
    private var pending: Deque<Bool> = []

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .head(let head) = unwrapInboundIn(data) {
            pending.append(head.version == .http1_1 && Self.permitsGzip(head.headers["Accept-Encoding"]))
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .head(var head) = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
        guard let isPermitted = pending.popFirst() else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return context.close(promise: nil)
        }
        if !isPermitted { head.headers.remove(name: HTTPField.Name.compressionMark.rawName) }
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }

    /// Whether the field permits gzip, by its name or by `*`, and does not prefer the bytes as they are (`identity`).
    static func permitsGzip(_ values: [String]) -> Bool {
        let weights = WeightedMembers(values)
        let names = [weights.weight(of: "gzip"), weights.weight(of: "x-gzip")].compactMap(\.self)
        let gzip = names.max() ?? weights.weight(of: "*") ?? 0
        return gzip > 0 && gzip >= weights.weight(of: "identity") ?? 0
    }
}
