/// One event of a stream of server-sent events (HTML §9.2).
struct ServerSentEvent: Hashable, Sendable {
    /// The type; `message` if the stream names none.
    var type: String
    /// The data lines, joined by line feeds.
    var data: String
    /// The last identifier of the stream up to this event; empty if there is none.
    var id: String
}

/// Incremental parser of server-sent events (HTML §9.2.6). Accepts the stream in pieces of any size.
struct EventStreamParser {
    /// An event that exceeds the size limit.
    struct Overlong: Error {}

    /// Maximum bytes of one event, so that a stream without line ends cannot fill the memory.
    private let eventLimit: Int
    /// The bytes of the current line.
    private var line: [UInt8] = []
    /// Whether the previous byte was a carriage return; a line feed after it belongs to the same line end.
    private var isAfterReturn = false
    private var isFirstLine = true
    private var type = ""
    private var data: [String] = []
    private var dataBytes = 0
    /// The last identifier, for `Last-Event-ID`; empty if the stream has sent none.
    private(set) var lastID = ""

    init(eventLimit: Int = 16 << 20) { self.eventLimit = eventLimit }

    /// Parses the next piece and returns the events that it completes.
    mutating func parse(_ bytes: some Sequence<UInt8>) throws(Overlong) -> [ServerSentEvent] {
        var events: [ServerSentEvent] = []
        for byte in bytes {
            defer { isAfterReturn = byte == UInt8(ascii: "\r") }
            switch byte {
            case UInt8(ascii: "\n") where isAfterReturn: continue
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
                if let event = endLine() { events.append(event) }
            default:
                guard line.count + dataBytes < eventLimit else { throw Overlong() }
                line.append(byte)
            }
        }
        return events
    }

    /// Applies the current line. Returns the event if the line is the empty one at its end.
    private mutating func endLine() -> ServerSentEvent? {
        if isFirstLine, line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }  // byte order mark
        isFirstLine = false
        defer { line.removeAll(keepingCapacity: true) }
        guard !line.isEmpty else { return dispatch() }
        let colon = line.firstIndex(of: UInt8(ascii: ":"))
        let name = String(decoding: line[..<(colon ?? line.endIndex)], as: UTF8.self)
        var value = colon.map { line[($0 + 1)...] } ?? []
        if value.first == UInt8(ascii: " ") { value.removeFirst() }
        apply(name, value)
        return nil
    }

    /// Applies one field. Unknown fields and comments (an empty name) are ignored.
    private mutating func apply(_ name: String, _ value: ArraySlice<UInt8>) {
        switch name {
        case "event": type = String(decoding: value, as: UTF8.self)
        case "data":
            data.append(String(decoding: value, as: UTF8.self))
            dataBytes += value.count + 1
        case "id" where !value.contains(0): lastID = String(decoding: value, as: UTF8.self)
        default: break
        }
    }

    /// Ends the current event; nil if it has no data.
    private mutating func dispatch() -> ServerSentEvent? {
        defer {
            type = ""
            data = []
            dataBytes = 0
        }
        guard !data.isEmpty else { return nil }
        return ServerSentEvent(
            type: type.isEmpty ? "message" : type, data: data.joined(separator: "\n"), id: lastID)
    }
}
