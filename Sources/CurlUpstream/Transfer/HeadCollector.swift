import CacheCore

/// Parser of a response head, line by line. Discards interim responses and enforces the limits on header size.
struct HeadCollector {
    /// The result of one line.
    enum Progress: Equatable {
        /// The head is incomplete, or the line was a trailer.
        case more
        /// The final response's status line has arrived.
        case answered
        /// The final response's head is complete.
        case complete
        /// A limit is exceeded.
        case tooLarge
        /// The line is no header field and no status line.
        case malformed
    }

    /// Limits; interim responses and trailers count too.
    private let maxBytes: Int
    private let maxLines: Int
    private var bytes = 0
    private var lines = 0
    /// Whether the lines belong to a 1xx response.
    private var isInterim = false
    private var isComplete = false

    /// Status of the last response; 0 before the first status line.
    private(set) var status = 0
    /// "1.0", "1.1" or "2".
    private(set) var version = "1.1"
    private(set) var headers = HeaderList()

    init(maxBytes: Int, maxLines: Int) {
        self.maxBytes = maxBytes
        self.maxLines = maxLines
    }

    /// Parses one line as passed by libcurl, including its line end.
    mutating func receive(_ line: UnsafeRawBufferPointer) -> Progress {
        bytes += line.count
        lines += 1
        guard bytes <= maxBytes, lines <= maxLines else { return .tooLarge }
        guard !isComplete else { return .more }  // trailers are counted and discarded
        var text = line[...]
        while let last = text.last, last == 10 || last == 13 { text = text.dropLast() }
        if text.isEmpty { return ended() }
        if text.starts(with: "HTTP/".utf8) { return begin(String(decoding: text, as: UTF8.self)) }
        guard let colon = text.firstIndex(of: 58), colon > text.startIndex else {
            return text.first == 32 || text.first == 9 ? fold(text) : .malformed
        }
        headers.append(String(decoding: text[..<colon], as: UTF8.self), Self.value(text[(colon + 1)...]))
        return .more
    }

    /// Parses a status line. It replaces the head of an interim response.
    private mutating func begin(_ line: String) -> Progress {
        let words = line.split(separator: " ", maxSplits: 2)
        guard words.count >= 2, let code = Int(words[1]), (100...999).contains(code) else { return .malformed }
        version = String(words[0].dropFirst(5))
        if version == "2.0" { version = "2" }
        status = code
        headers = HeaderList()
        isInterim = code < 200
        return isInterim ? .more : .answered
    }

    /// The empty line at the end of a head.
    private mutating func ended() -> Progress {
        guard status > 0 else { return .malformed }
        guard !isInterim else { return .more }
        isComplete = true
        return .complete
    }

    /// Appends an obsolete line folding (RFC 9112 §5.2) to the previous field.
    private mutating func fold(_ text: Slice<UnsafeRawBufferPointer>) -> Progress {
        guard let last = headers.fields.last else { return .malformed }
        headers = HeaderList(headers.fields.dropLast() + [.init(last.name, last.value + " " + Self.value(text))])
        return .more
    }

    /// Decodes a field value. Bytes that are not UTF-8 are read as ISO 8859-1 (RFC 9110 §5.5), so that different
    /// values, above all entity tags, stay different.
    private static func value(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        let bytes = bytes.trimmed(FieldText.isBlank)
        return String(validating: bytes, as: UTF8.self)
            ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}
