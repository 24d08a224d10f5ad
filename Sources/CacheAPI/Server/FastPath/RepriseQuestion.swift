import Glibc
import NIOCore

/// A request as it came, divided at the value of its `Range`: what is asked, and which bytes of it.
struct RepriseQuestion {
    /// What came in one piece from a client.
    enum Piece {
        /// One request for content, and nothing else.
        case question(RepriseQuestion)
        /// One request without a body, and nothing else.
        case other
        /// Anything else.
        case unclear
    }

    private(set) var bytes: ByteBuffer
    /// Where the value of `Range` stands, counted from the first readable byte; empty, at the end, where there is none.
    let range: Range<Int>
    let hash: Int

    /// Longer ones are left to others.
    private static let most = 4096

    /// Reads no more of a head than where its lines end; whether it is right is for the decoder to say.
    static func read(_ bytes: ByteBuffer) -> Piece {
        bytes.withUnsafeReadableBytes { text in
            guard text.count <= most, let range = rangeValue(text) else { return .unclear }
            guard isContent(text) else { return .other }
            return .question(RepriseQuestion(bytes: bytes, range: range, hash: hash(text, range)))
        }
    }

    private static func isContent(_ text: UnsafeRawBufferPointer) -> Bool {
        let begin: StaticString = "GET /o/"
        let bytes = UnsafeRawBufferPointer(start: begin.utf8Start, count: begin.utf8CodeUnitCount)
        return isSame(text.prefix(bytes.count), bytes[...])
    }

    private static func isSame(_ one: Slice<UnsafeRawBufferPointer>, _ two: Slice<UnsafeRawBufferPointer>) -> Bool {
        guard one.count == two.count, !one.isEmpty else { return one.count == two.count }
        guard let first = one.base.baseAddress, let second = two.base.baseAddress else { return false }
        return memcmp(first + one.startIndex, second + two.startIndex, one.count) == 0
    }

    /// Nil where `text` is not one head of whole lines, ends before or behind it, or announces a body.
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

    private static func hasName(_ name: StaticString, _ line: UnsafeRawBufferPointer) -> Bool {
        guard line.count >= name.utf8CodeUnitCount else { return false }
        for index in 0..<name.utf8CodeUnitCount - 1 where line[index] | 0x20 != name.utf8Start[index] { return false }
        return line[name.utf8CodeUnitCount - 1] == UInt8(ascii: ":")
    }

    /// Where the field's value stands, without the blanks around it.
    private static func value(of line: UnsafeRawBufferPointer) -> Range<Int> {
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex - 1
        func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let first = line[(colon + 1)...].firstIndex { !isBlank($0) } ?? line.endIndex
        let last = line[first...].lastIndex { !isBlank($0) } ?? first - 1
        return first..<last + 1
    }

    private static func hash(_ text: UnsafeRawBufferPointer, _ range: Range<Int>) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: text[..<range.lowerBound]))
        hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: text[range.upperBound...]))
        return hasher.finalize()
    }

    /// The same, without the memory it was received in.
    var kept: RepriseQuestion {
        var question = self
        question.bytes = ByteBuffer(bytes: bytes.readableBytesView)
        return question
    }

    /// Whether the other asks the same but for the range.
    func isSame(as other: RepriseQuestion) -> Bool {
        guard hash == other.hash, range.lowerBound == other.range.lowerBound else { return false }
        return bytes.withUnsafeReadableBytes { mine in
            other.bytes.withUnsafeReadableBytes { theirs in
                Self.isSame(mine[..<range.lowerBound], theirs[..<range.lowerBound])
                    && Self.isSame(mine[range.upperBound...], theirs[other.range.upperBound...])
            }
        }
    }
}
