import CacheCore
import NIOCore
import NIOHTTP1

/// Byte-level handler in front of the HTTP decoder: reports arriving bytes, and checks request lines before the decoder
/// does.
///
/// The decoder rejects two kinds of valid request lines: a later minor version than 1.1, which a server handles as 1.1
/// (RFC 9110 §2.5), and unknown methods, which get 501 (§9.1). Only the first request line of a read is checked. In a
/// pipelined one that came with an earlier request both are answered 400.
final class RequestLineHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The client has sent bytes.
    struct BytesReceived: Sendable {}

    /// Whether the next byte begins a request.
    fileprivate var isBetweenRequests = true

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        context.fireUserInboundEventTriggered(BytesReceived())
        guard isBetweenRequests else { return context.fireChannelRead(data) }
        isBetweenRequests = false
        var bytes = unwrapInboundIn(data)
        guard let line = RequestLine(bytes) else { return context.fireChannelRead(data) }
        guard RouteTable.methods.contains(line.method) else {
            return context.fireErrorCaught(
                CacheError(.notImplemented, "The method is not supported; supported: \(RouteTable().allMethods)."))
        }
        bytes.setInteger(UInt8(ascii: "1"), at: line.minorVersionIndex)
        context.fireChannelRead(wrapInboundOut(bytes))
    }
}

/// A well-formed request line of HTTP/1 that needs attention: not one of an ordinary method in HTTP/1.0 or 1.1.
private struct RequestLine {
    let method: String
    /// The index in the buffer of the digit after `HTTP/1.`.
    let minorVersionIndex: Int

    init?(_ bytes: ByteBuffer) {
        let found = bytes.withUnsafeReadableBytes { text -> (method: String, minorVersion: Int)? in
            guard let end = text.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
            var line = text[..<end]
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            guard let digit = line.last, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit),
                line.dropLast().suffix(8).elementsEqual(" HTTP/1.".utf8)
            else { return nil }
            let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
            guard words.count == 3, !words[1].isEmpty else { return nil }
            let method = String(decoding: words[0], as: UTF8.self)
            guard FieldText.isToken(method) else { return nil }
            let isOrdinary = digit < UInt8(ascii: "2") && RouteTable.methods.contains(method)
            return isOrdinary ? nil : (method, line.endIndex - 1)
        }
        guard let found else { return nil }
        method = found.method
        minorVersionIndex = bytes.readerIndex + found.minorVersion
    }
}

/// Handler behind the HTTP decoder: ignores requests for an upgrade (RFC 9110 §7.8), which this server does not support.
///
/// After a request with `Connection: Upgrade` the decoder parses nothing more. This handler then replaces the decoder
/// with a new one, and that one receives the remaining bytes.
final class UpgradeIgnoringHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private let limits: NIOHTTPDecoderLimitConfiguration
    private let requestLine: RequestLineHandler
    private var decoder: ByteToMessageHandler<HTTPRequestDecoder>
    /// Whether the decoder stops after the request that is being read.
    private var stopsDecoder = false

    private init(_ limits: NIOHTTPDecoderLimitConfiguration) {
        self.limits = limits
        requestLine = RequestLineHandler()
        decoder = Self.makeDecoder(limits)
    }

    /// Adds the encoder for responses and all handlers that decode requests.
    static func addDecoding(
        to pipeline: ChannelPipeline.SynchronousOperations, _ limits: APISettings.Limits
    ) throws {
        var decoderLimits = NIOHTTPDecoderLimitConfiguration()
        decoderLimits.maxHeaderFieldSize = limits.headerBytes
        decoderLimits.maxHeaderListSize = limits.headerBytes
        decoderLimits.maxHeaderFieldCount = limits.headerFields
        let handler = UpgradeIgnoringHandler(decoderLimits)
        try pipeline.addHandlers(HTTPResponseEncoder(), handler.requestLine, handler.decoder, handler)
    }

    private static func makeDecoder(
        _ limits: NIOHTTPDecoderLimitConfiguration
    ) -> ByteToMessageHandler<HTTPRequestDecoder> {
        ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes, limitConfiguration: limits))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(var head):
            requestLine.isBetweenRequests = false
            stopsDecoder = Self.wantsUpgrade(head)
            guard stopsDecoder else { return context.fireChannelRead(data) }
            head.headers.remove(name: "Upgrade")
            head.headers.remove(name: "HTTP2-Settings")
            context.fireChannelRead(wrapInboundOut(.head(head)))
        case .body: context.fireChannelRead(data)
        case .end:
            requestLine.isBetweenRequests = true
            if stopsDecoder { replaceDecoder(context) }
            context.fireChannelRead(data)
        }
    }

    /// The condition under which the decoder stops.
    private static func wantsUpgrade(_ head: HTTPRequestHead) -> Bool {
        head.headers.contains(name: "Upgrade")
            && head.headers[canonicalForm: "Connection"].contains { $0.lowercased() == "upgrade" }
    }

    private func replaceDecoder(_ context: ChannelHandlerContext) {
        stopsDecoder = false
        let (old, new) = (decoder, Self.makeDecoder(limits))
        let pipeline = context.pipeline.syncOperations
        do {
            try pipeline.addHandler(new, position: .after(old))
            decoder = new
            let here = NIOLoopBound(context, eventLoop: context.eventLoop)
            pipeline.removeHandler(old).whenSuccess { here.value.fireChannelReadComplete() }
        } catch {
            context.fireErrorCaught(error)
        }
    }
}

@available(*, unavailable)
extension RequestLineHandler: Sendable {}

@available(*, unavailable)
extension UpgradeIgnoringHandler: Sendable {}
