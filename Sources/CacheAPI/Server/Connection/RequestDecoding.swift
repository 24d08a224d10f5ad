import CacheCore
import NIOCore
import NIOHTTP1

/// HTTP/1 decoder for servers: the parser of NIO, given one request at a time.
///
/// The parser rejects valid request lines: later minor versions than 1.1, which a server handles as 1.1 (RFC 9110 §2.5), and
/// unknown methods, which get 501 (§9.1). It also stops after a request for an upgrade, which a server may ignore (§7.8). This
/// decoder therefore never gives the parser bytes of two requests at once. It checks each request line before the parser does,
/// and replaces the parser after a request that may have stopped it.
final class RequestDecoder: ByteToMessageDecoder {
    typealias InboundOut = HTTPServerRequestPart

    /// The client has sent bytes.
    struct BytesReceived: Sendable {}

    /// The part of a request that comes next.
    private enum Phase: Equatable {
        case line, head, chunks
        case body(remaining: Int)
    }

    /// A request line may have so many bytes: far more than the limit on targets, which is answered by the router.
    private static let maxLineBytes = 64 << 10

    private let limits: NIOHTTPDecoderLimitConfiguration
    private var parser: HTTPRequestDecoder
    /// The bytes of an unfinished field, which the parser has seen and not consumed.
    private var held: ByteBuffer?
    private var phase = Phase.line
    /// Whether the parser may read no more after this request.
    private var mayStop = false

    init(_ limits: APISettings.Limits) {
        var parserLimits = NIOHTTPDecoderLimitConfiguration()
        parserLimits.maxHeaderFieldSize = limits.headerBytes
        parserLimits.maxHeaderListSize = limits.headerBytes
        parserLimits.maxHeaderFieldCount = limits.headerFields
        self.limits = parserLimits
        parser = HTTPRequestDecoder(limitConfiguration: parserLimits)
    }

    /// Adds the encoder for responses and the handlers that decode requests.
    static func add(to pipeline: ChannelPipeline.SynchronousOperations, _ limits: APISettings.Limits) throws {
        let decoder = RequestDecoder(limits)
        try pipeline.addHandlers(HTTPResponseEncoder(), ByteToMessageHandler(decoder), RequestBoundaryHandler(decoder))
    }

    func decoderAdded(context: ChannelHandlerContext) { parser.decoderAdded(context: context) }

    func decoderRemoved(context: ChannelHandlerContext) { parser.decoderRemoved(context: context) }

    func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) throws -> DecodingState {
        context.fireUserInboundEventTriggered(BytesReceived())
        while buffer.readableBytes > 0 {
            guard let count = try nextPart(&buffer) else { return .needMoreData }
            try parse(count, context, &buffer)
        }
        return .needMoreData
    }

    func decodeLast(
        context: ChannelHandlerContext, buffer: inout ByteBuffer, seenEOF: Bool
    ) throws -> DecodingState {
        while buffer.readableBytes > 0, let count = try nextPart(&buffer) { try parse(count, context, &buffer) }
        if buffer.readableBytes > 0 { try parse(buffer.readableBytes, context, &buffer) }
        return try parser.decodeLast(context: context, buffer: &buffer, seenEOF: seenEOF)
    }

    private func parse(_ count: Int, _ context: ChannelHandlerContext, _ buffer: inout ByteBuffer) throws {
        guard var part = buffer.readSlice(length: count) else { return }
        if var whole = held {
            whole.writeBuffer(&part)
            part = whole
        }
        _ = try parser.decode(context: context, buffer: &part)
        // The parser wants the beginning of an unfinished field again.
        held = part.readableBytes > 0 ? part : nil
        guard mayStop, phase == .line else { return }
        (mayStop, held) = (false, nil)
        parser.decoderRemoved(context: context)
        parser = HTTPRequestDecoder(limitConfiguration: limits)
        parser.decoderAdded(context: context)
    }

    /// How many bytes the parser may have: none of them belongs to the next request. Nil until a request line is whole.
    private func nextPart(_ buffer: inout ByteBuffer) throws -> Int? {
        switch phase {
        case .line: return try nextLine(&buffer)
        case .head, .chunks: return Self.line(of: buffer) ?? buffer.readableBytes
        case .body(let remaining): return min(remaining, buffer.readableBytes)
        }
    }

    /// Checks the request line; answers the size of the head if all of it is there, else that of the line.
    private func nextLine(_ buffer: inout ByteBuffer) throws -> Int? {
        guard let count = Self.line(of: buffer) else {
            guard buffer.readableBytes <= Self.maxLineBytes else {
                throw CacheError(.uriTooLong, "The request line is longer than \(Self.maxLineBytes) bytes.")
            }
            // Bytes that cannot begin a request line are left to the parser at once.
            let first = buffer.readableBytesView.first ?? 0
            let isBeginning = first == UInt8(ascii: "\r") || FieldText.isToken(String(UnicodeScalar(first)))
            return isBeginning ? nil : buffer.readableBytes
        }
        if count <= 2, Self.isBlank(buffer, count) { return count }  // §2.2 of RFC 9112: ignored in front of a request
        if let line = RequestLine(buffer, count) {
            guard RouteTable.methods.contains(line.method) else {
                throw CacheError(.notImplemented, "The method is not supported; supported: \(RouteTable().allMethods).")
            }
            buffer.setInteger(UInt8(ascii: "1"), at: line.minorVersionIndex)
        }
        phase = .head
        return Self.head(of: buffer) ?? count
    }

    private static func isBlank(_ buffer: ByteBuffer, _ count: Int) -> Bool {
        buffer.readableBytesView.prefix(count).allSatisfy { $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") }
    }

    /// The size of the first line, its end included; nil where that is not there.
    private static func line(of buffer: ByteBuffer) -> Int? {
        buffer.withUnsafeReadableBytes { text in text.firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } }
    }

    /// The size of the head, if its empty line is there.
    private static func head(of buffer: ByteBuffer) -> Int? {
        buffer.withUnsafeReadableBytes { text in
            var start = text.startIndex
            while let end = text[start...].firstIndex(of: UInt8(ascii: "\n")) {
                if end == start || (end == start + 1 && text[start] == UInt8(ascii: "\r")) { return end + 1 }
                start = end + 1
            }
            return nil
        }
    }

    // MARK: Requests that the parser has found

    fileprivate func began(_ head: HTTPRequestHead) {
        mayStop = head.method == .CONNECT || head.headers.contains(name: "Upgrade")
        let length = head.headers.first(name: "Content-Length").flatMap { FieldText.byteCount($0.utf8) }
        let isChunked = head.headers.contains(name: "Transfer-Encoding")
        phase = isChunked ? .chunks : .body(remaining: max(1, Int(clamping: length ?? 1)))
    }

    fileprivate func received(_ bytes: Int) {
        if case .body(let remaining) = phase { phase = .body(remaining: max(1, remaining - bytes)) }
    }

    fileprivate func ended() { phase = .line }
}

/// A well-formed request line of HTTP/1 that needs attention: not one of an ordinary method in HTTP/1.0 or 1.1.
private struct RequestLine {
    let method: String
    /// The index in the buffer of the digit after `HTTP/1.`.
    let minorVersionIndex: Int

    /// `count`: the size of the line at the beginning of the buffer, its end included.
    init?(_ bytes: ByteBuffer, _ count: Int) {
        let found = bytes.withUnsafeReadableBytes { text -> (method: String, minorVersion: Int)? in
            var line = text[..<(count - 1)]
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            guard let digit = line.last, FieldText.isDigit(digit),
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

/// Handler behind the HTTP decoder: tells the decoder where requests begin and end, and removes the fields of upgrades.
private final class RequestBoundaryHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private let decoder: RequestDecoder

    init(_ decoder: RequestDecoder) { self.decoder = decoder }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(var head):
            decoder.began(head)
            guard head.headers.contains(name: "Upgrade") else { return context.fireChannelRead(data) }
            head.headers.remove(name: "Upgrade")
            head.headers.remove(name: "HTTP2-Settings")
            context.fireChannelRead(wrapInboundOut(.head(head)))
        case .body(let bytes):
            decoder.received(bytes.readableBytes)
            context.fireChannelRead(data)
        case .end:
            decoder.ended()
            context.fireChannelRead(data)
        }
    }
}

@available(*, unavailable)
extension RequestDecoder: Sendable {}

@available(*, unavailable)
extension RequestBoundaryHandler: Sendable {}
