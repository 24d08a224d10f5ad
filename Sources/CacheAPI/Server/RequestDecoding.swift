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

/// HTTP decoder that goes on after a request for an upgrade, where the parser of NIO stops.
///
/// It does so with a new parser: the old one leaves all bytes behind the request.
private final class RequestDecoder: ByteToMessageDecoder {
    typealias InboundOut = HTTPServerRequestPart

    private let limits: NIOHTTPDecoderLimitConfiguration
    private var parser: HTTPRequestDecoder
    /// Whether the last request has ended, no other one has begun, and the parser reads no more.
    var hasStopped = false

    init(limits: NIOHTTPDecoderLimitConfiguration) {
        self.limits = limits
        parser = HTTPRequestDecoder(limitConfiguration: limits)
    }

    func decoderAdded(context: ChannelHandlerContext) { parser.decoderAdded(context: context) }

    func decoderRemoved(context: ChannelHandlerContext) { parser.decoderRemoved(context: context) }

    func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) throws -> DecodingState {
        let state = try parser.decode(context: context, buffer: &buffer)
        return restart(context) && buffer.readableBytes > 0 ? .continue : state
    }

    func decodeLast(
        context: ChannelHandlerContext, buffer: inout ByteBuffer, seenEOF: Bool
    ) throws -> DecodingState {
        while buffer.readableBytes > 0, case .continue = try decode(context: context, buffer: &buffer) {}
        return try parser.decodeLast(context: context, buffer: &buffer, seenEOF: seenEOF)
    }

    /// Answers whether there is a new parser.
    private func restart(_ context: ChannelHandlerContext) -> Bool {
        guard hasStopped else { return false }
        hasStopped = false
        parser.decoderRemoved(context: context)
        parser = HTTPRequestDecoder(limitConfiguration: limits)
        parser.decoderAdded(context: context)
        return true
    }
}

/// Handler behind the HTTP decoder: ignores requests for an upgrade (RFC 9110 §7.8), which this server does not support.
final class UpgradeIgnoringHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private let requestLine = RequestLineHandler()
    private let decoder: RequestDecoder
    /// Whether the parser stops after the request that is being read.
    private var stopsParser = false

    private init(_ decoder: RequestDecoder) { self.decoder = decoder }

    /// Adds the encoder for responses and all handlers that decode requests.
    static func addDecoding(
        to pipeline: ChannelPipeline.SynchronousOperations, _ limits: APISettings.Limits
    ) throws {
        var decoderLimits = NIOHTTPDecoderLimitConfiguration()
        decoderLimits.maxHeaderFieldSize = limits.headerBytes
        decoderLimits.maxHeaderListSize = limits.headerBytes
        decoderLimits.maxHeaderFieldCount = limits.headerFields
        let decoder = RequestDecoder(limits: decoderLimits)
        let handler = UpgradeIgnoringHandler(decoder)
        try pipeline.addHandlers(
            HTTPResponseEncoder(), handler.requestLine, ByteToMessageHandler(decoder), handler)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(var head):
            requestLine.isBetweenRequests = false
            decoder.hasStopped = false
            stopsParser = Self.stopsParser(head)
            guard stopsParser else { return context.fireChannelRead(data) }
            head.headers.remove(name: "Upgrade")
            head.headers.remove(name: "HTTP2-Settings")
            context.fireChannelRead(wrapInboundOut(.head(head)))
        case .body: context.fireChannelRead(data)
        case .end:
            requestLine.isBetweenRequests = true
            decoder.hasStopped = stopsParser
            context.fireChannelRead(data)
        }
    }

    /// The condition under which the parser stops.
    private static func stopsParser(_ head: HTTPRequestHead) -> Bool {
        if head.method == .CONNECT { return true }
        return head.headers.contains(name: "Upgrade")
            && head.headers[canonicalForm: "Connection"].contains { $0.lowercased() == "upgrade" }
    }
}

@available(*, unavailable)
extension RequestLineHandler: Sendable {}

@available(*, unavailable)
extension RequestDecoder: Sendable {}

@available(*, unavailable)
extension UpgradeIgnoringHandler: Sendable {}
