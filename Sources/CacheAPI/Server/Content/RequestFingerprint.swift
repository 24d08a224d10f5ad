import Glibc
import NIOCore

/// The bytes of a request for content, split at the value of `Range`. Two requests with equal bytes outside that value
/// differ in the requested range only.
///
/// A player requests one file piece by piece with identical fields except `Range`. The scan finds the lines of the head
/// and the fields that it needs. A malformed head is no problem: it is never equal to the head of a request that was
/// answered, so the decoder gets it and rejects it.
struct RequestFingerprint {
    /// The head, with its empty line.
    private(set) var bytes: ByteBuffer
    /// The position of the value of `Range`, from the first readable byte; empty and at the end without the field.
    let range: Range<Int>
    /// The hash of all bytes outside `range`.
    let hash: Int

    /// The maximum length of a head in bytes.
    private static let most = 4096

    /// The first request in `buffer`. Nil unless it is a complete GET below `/o/` without a declared body.
    init?(_ buffer: ByteBuffer) {
        let found = buffer.withUnsafeReadableBytes { text -> (count: Int, range: Range<Int>, hash: Int)? in
            let text = UnsafeRawBufferPointer(rebasing: text.prefix(Self.most))
            guard Self.isContent(text), let (count, range) = Self.head(text) else { return nil }
            return (count, range, Self.hash(text.prefix(count), range))
        }
        guard let found, let bytes = buffer.getSlice(at: buffer.readerIndex, length: found.count) else { return nil }
        self.bytes = bytes
        (range, hash) = (found.range, found.hash)
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

    /// The length of the head, and the position of the value of `Range` in it.
    ///
    /// Nil for an incomplete head, other line ends than CR LF, a declared body, folded field lines (obs-fold), and an
    /// empty or repeated `Range`.
    private static func head(_ text: UnsafeRawBufferPointer) -> (count: Int, range: Range<Int>)? {
        var (start, range) = (0, Range<Int>?.none)
        while start < text.count {
            guard let feed = text[start...].firstIndex(of: UInt8(ascii: "\n")), feed > start,
                text[feed - 1] == UInt8(ascii: "\r")
            else { return nil }
            if feed == start + 1 { return (feed + 1, range ?? feed + 1..<feed + 1) }
            let line = UnsafeRawBufferPointer(rebasing: text[start..<feed - 1])
            switch line[0] | 0x20 {
            case UInt8(ascii: "r") where hasName("range:", line):
                guard range == nil else { return nil }
                let value = value(of: line)
                guard !value.isEmpty else { return nil }
                range = start + value.lowerBound..<start + value.upperBound
            case UInt8(ascii: "c") where hasName("content-length:", line): return nil
            case UInt8(ascii: "t") where hasName("transfer-encoding:", line): return nil
            case UInt8(ascii: " "), UInt8(ascii: "\t") | 0x20: return nil
            default: break
            }
            start = feed + 1
        }
        return nil
    }

    /// Whether the line starts with `name`; it is lower case and ends with a colon. Compares without regard to case.
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
    private static func hash(_ text: Slice<UnsafeRawBufferPointer>, _ range: Range<Int>) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: text[..<range.lowerBound]))
        hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: text[range.upperBound...]))
        return hasher.finalize()
    }

    /// A copy with storage of its own; it does not retain the receive buffer.
    var kept: RequestFingerprint {
        var fingerprint = self
        fingerprint.bytes = ByteBuffer(bytes: bytes.readableBytesView)
        return fingerprint
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

    /// Whether the request has this target.
    func hasTarget(_ target: String) -> Bool {
        bytes.readableBytesView.dropFirst(4).starts(with: (target + " ").utf8)
    }
}
