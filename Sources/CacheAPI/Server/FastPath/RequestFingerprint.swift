import Glibc
import NIOCore

/// The bytes of a content request, split at the value of `Range`. Two requests with equal bytes outside that value
/// differ in the requested range only.
struct RequestFingerprint {
    /// Classification of the bytes of one read.
    enum Piece {
        /// Exactly one GET request below `/o/`.
        case question(RequestFingerprint)
        /// Exactly one other request without a body.
        case other
        /// Anything else: an incomplete, overlong or pipelined request, or one with a body.
        case unclear
    }

    /// The whole request.
    private(set) var bytes: ByteBuffer
    /// The position of the value of `Range`, from the first readable byte; empty and at the end without the field.
    let range: Range<Int>
    /// The hash of all bytes outside `range`.
    let hash: Int

    /// The maximum length of a request in bytes.
    private static let most = 4096

    /// Classifies the bytes of one read.
    ///
    /// It only finds the lines of the head and the fields that it needs. A malformed head is no problem: it is never
    /// equal to the head of a prepared response, so the decoder gets it and rejects it.
    static func read(_ bytes: ByteBuffer) -> Piece {
        bytes.withUnsafeReadableBytes { text in
            guard text.count <= most, let range = rangeValue(text) else { return .unclear }
            guard isContent(text) else { return .other }
            return .question(RequestFingerprint(bytes: bytes, range: range, hash: hash(text, range)))
        }
    }

    /// Whether the request line starts with `GET /o/`.
    private static func isContent(_ text: UnsafeRawBufferPointer) -> Bool {
        let begin: StaticString = "GET /o/"
        let bytes = UnsafeRawBufferPointer(start: begin.utf8Start, count: begin.utf8CodeUnitCount)
        return isSame(text.prefix(bytes.count), bytes[...])
    }

    /// Whether two slices have equal bytes.
    private static func isSame(_ one: Slice<UnsafeRawBufferPointer>, _ two: Slice<UnsafeRawBufferPointer>) -> Bool {
        guard one.count == two.count, !one.isEmpty else { return one.count == two.count }
        guard let first = one.base.baseAddress, let second = two.base.baseAddress else { return false }
        return memcmp(first + one.startIndex, second + two.startIndex, one.count) == 0
    }

    /// Returns the position of the value of `Range`, or an empty range at the end without the field.
    ///
    /// Returns nil unless `text` is exactly one complete head with CR LF line ends. Also nil for a declared body, for
    /// folded field lines (obs-fold), and for an empty or repeated `Range`.
    private static func rangeValue(_ text: UnsafeRawBufferPointer) -> Range<Int>? {
        var (start, range) = (0, text.count..<text.count)
        while start < text.count {
            guard let feed = text[start...].firstIndex(of: UInt8(ascii: "\n")), feed > start,
                text[feed - 1] == UInt8(ascii: "\r")
            else { return nil }
            if feed == start + 1 { return feed + 1 == text.count && start > 0 ? range : nil }
            let line = UnsafeRawBufferPointer(rebasing: text[start..<feed - 1])
            switch line[0] | 0x20 {
            case UInt8(ascii: "r") where hasName("range:", line):
                guard range.isEmpty else { return nil }
                range = start + value(of: line).lowerBound..<start + value(of: line).upperBound
                guard !range.isEmpty else { return nil }
            case UInt8(ascii: "c") where hasName("content-length:", line): return nil
            case UInt8(ascii: "t") where hasName("transfer-encoding:", line): return nil
            case UInt8(ascii: " "), UInt8(ascii: "\t") | 0x20: return nil
            default: break
            }
            start = feed + 1
        }
        return nil
    }

    /// Whether the line starts with `name`, which is lower case and ends with a colon. Compares without regard to case.
    private static func hasName(_ name: StaticString, _ line: UnsafeRawBufferPointer) -> Bool {
        guard line.count >= name.utf8CodeUnitCount else { return false }
        for index in 0..<name.utf8CodeUnitCount - 1 where line[index] | 0x20 != name.utf8Start[index] { return false }
        return line[name.utf8CodeUnitCount - 1] == UInt8(ascii: ":")
    }

    /// The position of the field's value in the line, without surrounding blanks.
    private static func value(of line: UnsafeRawBufferPointer) -> Range<Int> {
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex - 1
        func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let first = line[(colon + 1)...].firstIndex { !isBlank($0) } ?? line.endIndex
        let last = line[first...].lastIndex { !isBlank($0) } ?? first - 1
        return first..<last + 1
    }

    /// Hashes all bytes outside the value of `Range`.
    private static func hash(_ text: UnsafeRawBufferPointer, _ range: Range<Int>) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: text[..<range.lowerBound]))
        hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: text[range.upperBound...]))
        return hasher.finalize()
    }

    /// A copy with storage of its own, which does not retain the receive buffer.
    var kept: RequestFingerprint {
        var question = self
        question.bytes = ByteBuffer(bytes: bytes.readableBytesView)
        return question
    }

    /// Whether the two requests differ in the value of `Range` at most.
    func isSame(as other: RequestFingerprint) -> Bool {
        guard hash == other.hash, range.lowerBound == other.range.lowerBound else { return false }
        return bytes.withUnsafeReadableBytes { mine in
            other.bytes.withUnsafeReadableBytes { theirs in
                Self.isSame(mine[..<range.lowerBound], theirs[..<range.lowerBound])
                    && Self.isSame(mine[range.upperBound...], theirs[other.range.upperBound...])
            }
        }
    }
}
