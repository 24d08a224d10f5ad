import CacheCore

/// The header of an EBML element (RFC 8794 §4 to §6).
struct EBMLElement {
    /// The element ID with its length marker.
    let id: UInt32
    /// The position of the element.
    let offset: Int64
    /// The position of the content.
    let content: Int64
    /// The position behind the content, at most `Int64.max`; nil: unknown size.
    let end: Int64?

    /// The longest header: an ID of 4 bytes and a size of 8 bytes.
    static let longestHeader: Int64 = 12

    /// Parses the header at `position`. Throws `.malformed` for an invalid ID or size, and for a header that is not
    /// completely inside of `bytes`.
    init(_ bytes: MediaBytes, at position: Int64) throws(MediaError) {
        guard let first = bytes.byte(at: position), first.leadingZeroBitCount < 4,
            let id = bytes.number(at: position, count: first.leadingZeroBitCount + 1)
        else { throw .malformed("EBML element ID \(bytes.hexadecimal(at: position))", offset: position) }
        let sizePosition = position + Int64(first.leadingZeroBitCount) + 1
        guard let marker = bytes.byte(at: sizePosition), marker != 0,
            let coded = bytes.number(at: sizePosition, count: marker.leadingZeroBitCount + 1)
        else { throw .malformed("Size of the EBML element \(MatroskaID.name(UInt32(id)))", offset: position) }
        let bits = 7 * UInt64(marker.leadingZeroBitCount + 1)
        let mask = (UInt64(1) << bits) - 1
        self.id = UInt32(id)
        offset = position
        content = sizePosition + Int64(marker.leadingZeroBitCount) + 1
        end = coded & mask == mask ? nil : ByteRange(offset: content, length: Int64(coded & mask)).upperBound
    }

    /// The name of the element for error messages.
    var name: String { MatroskaID.name(id) }
}

/// The children of an element whose content is in memory.
struct EBMLChildren {
    private let bytes: MediaBytes
    private let parent: String
    private var position: Int64

    /// - Parameter parent: the name of the element for error messages.
    init(_ bytes: MediaBytes, of parent: String) {
        self.bytes = bytes
        self.parent = parent
        position = bytes.offset
    }

    /// The next child and its content; nil at the end. Throws `.malformed` if the child has an unknown size or exceeds
    /// its parent.
    mutating func next() throws(MediaError) -> (id: UInt32, content: MediaBytes)? {
        guard position < bytes.end else { return nil }
        let element = try EBMLElement(bytes, at: position)
        guard let end = element.end, end <= bytes.end else {
            throw .malformed("\(parent): the element \(element.name) exceeds its parent.", offset: position)
        }
        position = end
        return (element.id, bytes.part(element.content..<end))
    }
}

extension MediaBytes {
    /// The content as an unsigned integer (RFC 8794 §7.2); nil with more than 8 bytes.
    var unsignedInteger: UInt64? { number(at: offset, count: bytes.count) }

    /// The content as a float of 0, 4 or 8 bytes (RFC 8794 §7.3); nil for another length.
    var float: Double? {
        switch bytes.count {
        case 0: 0
        case 4: unsignedInteger.map { Double(Float(bitPattern: UInt32($0))) }
        case 8: unsignedInteger.map { Double(bitPattern: $0) }
        default: nil
        }
    }

    /// The printable ASCII characters of the content before the first NUL, at most 64.
    var shortText: String {
        String(decoding: bytes.prefix(64).prefix { $0 != 0 }.filter { (0x20..<0x7F).contains($0) }, as: UTF8.self)
    }
}
