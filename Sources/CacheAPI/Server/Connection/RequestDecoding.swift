import CacheCore
import NIOCore
import NIOHTTP1

/// HTTP/1 request decoder: NIO's parser, given the bytes of one request at a time.
///
/// NIO's parser deviates from the RFC in three cases:
/// - It rejects minor versions above 1, which a server handles as HTTP/1.1 (RFC 9110 §2.5).
/// - It rejects unknown methods, which get 501 (§9.1).
/// - It stops after a request with `Upgrade`, which a server may ignore (§7.8).
///
/// This decoder therefore checks each request line before the parser does, never gives the parser bytes of two requests
/// at once, and replaces the parser after a request that may have stopped it.
final class RequestDecoder: ByteToMessageDecoder {
    typealias InboundOut = HTTPServerRequestPart

    /// Event for later handlers: bytes of a request have arrived.
    struct BytesReceived: Sendable {}

    /// The part of a request that comes next.
    private enum Phase: Equatable {
        case line, head, chunks
        case body(remaining: Int)
    }

    /// The maximum length of a request line in bytes. The router rejects targets above `limits.urlBytes`, which is far
    /// lower.
    private static let maxLineBytes = 64 << 10

    private let limits: NIOHTTPDecoderLimitConfiguration
    /// Answers requests before they are decoded; nil without prepared responses.
    private let prepared: PreparedResponseSender?
    private var parser: HTTPRequestDecoder
    /// Bytes that the parser has seen and not consumed: an incomplete field line. Nil if there are none.
    private var held: ByteBuffer?
    private var phase = Phase.line
    /// Whether the parser may stop after the current request, so that it must be replaced.
    private var mayStop = false

    init(_ limits: APISettings.Limits, prepared: PreparedResponseSender? = nil) {
        self.prepared = prepared
        var parserLimits = NIOHTTPDecoderLimitConfiguration()
        parserLimits.maxHeaderFieldSize = limits.headerBytes
        parserLimits.maxHeaderListSize = limits.headerBytes
        parserLimits.maxHeaderFieldCount = limits.headerFields
        self.limits = parserLimits
        parser = HTTPRequestDecoder(limitConfiguration: parserLimits)
    }

    /// Adds the encoder for responses and the handlers that decode requests.
    static func add(
        to pipeline: ChannelPipeline.SynchronousOperations, _ limits: APISettings.Limits,
        prepared: PreparedResponseSender? = nil
    ) throws {
        let (encoder, decoder) = (HTTPResponseEncoder(), RequestDecoder(limits, prepared: prepared))
        try pipeline.addHandlers(encoder, ByteToMessageHandler(decoder), RequestBoundaryHandler(decoder))
        prepared?.attach(to: try pipeline.context(handler: encoder))
    }

    func decoderAdded(context: ChannelHandlerContext) { parser.decoderAdded(context: context) }

    func decoderRemoved(context: ChannelHandlerContext) {
        prepared?.attach(to: nil)
        parser.decoderRemoved(context: context)
    }

    func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) throws -> DecodingState {
        if isAnswered(&buffer) { return .continue }
        defer { prepared?.decoded() }
        context.fireUserInboundEventTriggered(BytesReceived())
        while buffer.readableBytes > 0 {
            guard let count = try nextPart(&buffer) else { return .needMoreData }
            try parse(count, context, &buffer)
            if phase == .line { return .continue }  // the next request may have a prepared response
        }
        return .needMoreData
    }

    /// Whether a prepared response was sent for the request at the start of `buffer`, which is then removed.
    private func isAnswered(_ buffer: inout ByteBuffer) -> Bool {
        guard let prepared, phase == .line, held == nil else { return false }
        return prepared.answer(&buffer)
    }

    func decodeLast(
        context: ChannelHandlerContext, buffer: inout ByteBuffer, seenEOF: Bool
    ) throws -> DecodingState {
        while buffer.readableBytes > 0, let count = try nextPart(&buffer) { try parse(count, context, &buffer) }
        if buffer.readableBytes > 0 { try parse(buffer.readableBytes, context, &buffer) }
        return try parser.decodeLast(context: context, buffer: &buffer, seenEOF: seenEOF)
    }

    /// Gives the next `count` bytes to the parser, after the bytes that it has not consumed. Replaces the parser at the
    /// end of a request that may have stopped it.
    private func parse(_ count: Int, _ context: ChannelHandlerContext, _ buffer: inout ByteBuffer) throws {
        guard var part = buffer.readSlice(length: count) else { return }
        if var whole = held {
            whole.writeBuffer(&part)
            part = whole
        }
        _ = try parser.decode(context: context, buffer: &part)
        // The parser needs an incomplete field line again from its start.
        held = part.readableBytes > 0 ? part : nil
        guard mayStop, phase == .line else { return }
        (mayStop, held) = (false, nil)
        parser.decoderRemoved(context: context)
        parser = HTTPRequestDecoder(limitConfiguration: limits)
        parser.decoderAdded(context: context)
    }

    /// The number of bytes for the parser, none of which belongs to the next request. Nil while the request line is
    /// incomplete.
    private func nextPart(_ buffer: inout ByteBuffer) throws -> Int? {
        switch phase {
        case .line: return try nextLine(&buffer)
        case .head, .chunks: return Self.line(of: buffer) ?? buffer.readableBytes
        case .body(let remaining): return min(remaining, buffer.readableBytes)
        }
    }

    /// Checks the request line. Returns the size of the head if it is complete, else the size of the line; nil if the
    /// line is incomplete. A later minor version is changed to 1 in the buffer.
    ///
    /// Throws `.uriTooLong` for an overlong line and `.notImplemented` for an unknown method.
    private func nextLine(_ buffer: inout ByteBuffer) throws -> Int? {
        guard let count = Self.line(of: buffer) else {
            guard buffer.readableBytes <= Self.maxLineBytes else {
                throw CacheError(.uriTooLong, "The request line is longer than \(Self.maxLineBytes) bytes.")
            }
            // Bytes that cannot start a request line go to the parser at once; it reports the error.
            let first = buffer.readableBytesView.first ?? 0
            let isBeginning = first == UInt8(ascii: "\r") || FieldText.isToken(String(UnicodeScalar(first)))
            return isBeginning ? nil : buffer.readableBytes
        }
        if count <= 2, Self.isBlank(buffer, count) { return count }  // ignored before a request (RFC 9112 §2.2)
        if let line = RequestLine(buffer, count) {
            guard RouteTable.methodNames.contains(line.method) else { throw RouteTable.unknownMethod }
            buffer.setInteger(UInt8(ascii: "1"), at: line.minorVersionIndex)
        }
        phase = .head
        return Self.head(of: buffer) ?? count
    }

    /// Whether the first `count` bytes are line ends only.
    private static func isBlank(_ buffer: ByteBuffer, _ count: Int) -> Bool {
        buffer.readableBytesView.prefix(count).allSatisfy { $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") }
    }

    /// The size of the first line including its line feed; nil if there is no line feed.
    private static func line(of buffer: ByteBuffer) -> Int? {
        buffer.withUnsafeReadableBytes { text in text.firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } }
    }

    /// The size of the head including its empty line; nil if the head is incomplete.
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

    // MARK: Results of the parser, reported by `RequestBoundaryHandler`

    /// The parser has decoded a head: sets the phase for the body.
    ///
    /// At least one byte remains until ``ended()``, so that each call of the parser makes progress.
    fileprivate func began(_ head: HTTPRequestHead) {
        mayStop = head.method == .CONNECT || head.headers.contains(name: "Upgrade")
        let length = head.headers.first(name: "Content-Length").flatMap { FieldText.byteCount($0.utf8) }
        let isChunked = head.headers.contains(name: "Transfer-Encoding")
        phase = isChunked ? .chunks : .body(remaining: max(1, Int(clamping: length ?? 1)))
    }

    /// The parser has decoded this many body bytes.
    fileprivate func received(_ bytes: Int) {
        if case .body(let remaining) = phase { phase = .body(remaining: max(1, remaining - bytes)) }
    }

    /// The parser has decoded the end of the request.
    fileprivate func ended() { phase = .line }
}

/// A well-formed HTTP/1 request line that NIO's parser would reject: an unknown method or a minor version above 1.
private struct RequestLine {
    let method: String
    /// The index in the buffer of the digit after `HTTP/1.`.
    let minorVersionIndex: Int

    /// Parses the line in the first `count` bytes, which include the line end. Nil for a malformed line and for a line
    /// that the parser accepts.
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
            let isOrdinary = digit < UInt8(ascii: "2") && RouteTable.methodNames.contains(method)
            return isOrdinary ? nil : (method, line.endIndex - 1)
        }
        guard let found else { return nil }
        method = found.method
        minorVersionIndex = bytes.readerIndex + found.minorVersion
    }
}

/// Channel handler behind the HTTP decoder: reports the start and end of requests to the decoder, and removes `Upgrade`
/// and `HTTP2-Settings`, because upgrades are ignored.
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
