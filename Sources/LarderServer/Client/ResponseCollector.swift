import CacheCore

/// The response of one request: collects the head and a document, or passes the events of a stream on.
///
/// Used by libcurl's callbacks on the thread that performs the request.
final class ResponseCollector {
    /// The result of an event for its stream.
    enum Continuation { case proceed, stop }

    /// Maximum bytes of a document.
    private static let documentLimit = 64 << 20

    private(set) var status = 0
    private(set) var body: [UInt8] = []
    /// The reason why the collector aborted the response; nil: it did not.
    private(set) var failure: (any Error)?
    /// Whether the event closure ended the stream.
    private(set) var isStopped = false
    private var contentType = ""
    private var parser = EventStreamParser()
    /// Nil: the response is a document.
    private let onEvent: ((ServerSentEvent) throws -> Continuation)?
    private let url: String

    init(url: String, onEvent: ((ServerSentEvent) throws -> Continuation)? = nil) {
        self.url = url
        self.onEvent = onEvent
    }

    /// Processes one line of the head.
    func receivedHead(_ line: UnsafeRawBufferPointer) {
        let content = line.prefix { $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\n") }
        let line = String(decoding: content, as: UTF8.self)
        if line.hasPrefix("HTTP/") {
            status = line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            contentType = ""
        } else if let colon = line.firstIndex(of: ":"), FieldText.lowered(line[..<colon]) == "content-type" {
            contentType = FieldText.lowered(FieldText.trimmed(line[line.index(after: colon)...]))
        }
    }

    /// Processes bytes of the body. False: the response is aborted.
    func receivedBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let onEvent, status == 200 else { return collect(bytes) }
        do {
            guard contentType.hasPrefix("text/event-stream") else { throw ClientError.malformed(from: url) }
            for event in try parser.parse(bytes) where try onEvent(event) == .stop {
                isStopped = true
                return false
            }
        } catch is EventStreamParser.Overlong {
            failure = ClientError.malformed(from: url)
        } catch {
            failure = error
        }
        return failure == nil
    }

    private func collect(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard body.count + bytes.count <= Self.documentLimit else {
            failure = ClientError.malformed(from: url)
            return false
        }
        body += bytes
        return true
    }
}
