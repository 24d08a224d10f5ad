import CacheCore

/// A four-character code: the type of a box, a handler or a sample entry (ISO/IEC 14496-12 §4.2).
struct MP4FourCC: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    let value: UInt32

    init(_ value: UInt32) { self.value = value }

    init(stringLiteral text: StaticString) {
        value = text.withUTF8Buffer { $0.reduce(0) { $0 << 8 | UInt32($1) } }
    }

    /// The four characters. A byte outside of printable ASCII is written as `\xNN`.
    var description: String {
        [24, 16, 8, 0].map { Self.text(of: UInt8(truncatingIfNeeded: value >> $0)) }.joined()
    }

    /// One byte as text: the character if it is printable ASCII, otherwise `\xNN`.
    static func text(of byte: UInt8) -> String {
        if (0x20..<0x7F).contains(byte) { return String(UnicodeScalar(byte)) }
        return "\\x" + byte.hexDigits
    }
}

extension [UInt8] {
    /// The unsigned big-endian integer of `width` bytes (at most 8) at `index`. All bytes must be within the array.
    func bigEndian(at index: Int, width: Int) -> UInt64 {
        var value: UInt64 = 0
        for position in index..<index + width { value = value << 8 | UInt64(self[position]) }
        return value
    }

    /// The sum of the unsigned big-endian integers of 32 bits in a range of bytes.
    func bigEndianSum(_ range: Range<Int>) -> Int64 {
        withUnsafeBytes { bytes in
            let part = UnsafeRawBufferPointer(rebasing: bytes[range])
            return stride(from: 0, to: part.count - 3, by: 4).reduce(0) { sum, index in
                sum + Int64(UInt32(bigEndian: part.loadUnaligned(fromByteOffset: index, as: UInt32.self)))
            }
        }
    }
}

/// The header of a box: its type and its extent in the file.
struct MP4BoxHeader: Hashable {
    let type: MP4FourCC
    /// The offset of the header in the file.
    let start: Int64
    /// The offset of the first byte behind the header.
    let payloadStart: Int64
    /// The offset of the first byte behind the box.
    let end: Int64

    /// Parses a header with a 32-bit size, a 64-bit `largesize`, or size 0 (up to the end of the parent).
    ///
    /// - Parameters:
    ///   - bytes: bytes of the file.
    ///   - base: the offset of the first of these bytes in the file.
    ///   - start: the offset of the header in the file, at or behind `base`.
    ///   - parentEnd: the end of the parent box, or the length of the file.
    /// - Returns: nil if `bytes` end within the header.
    /// - Throws: `malformed` if the size is less than the header, or if the box ends behind its parent.
    static func parse(
        _ bytes: [UInt8], base: Int64, at start: Int64, parentEnd: Int64
    ) throws(MediaError) -> MP4BoxHeader? {
        let index = Int(start - base)
        guard bytes.count - index >= 8 else { return nil }
        let type = MP4FourCC(UInt32(bytes.bigEndian(at: index + 4, width: 4)))
        var headerLength: UInt64 = 8
        var size = bytes.bigEndian(at: index, width: 4)
        switch size {
        case 0:
            return MP4BoxHeader(type: type, start: start, payloadStart: start + 8, end: max(start + 8, parentEnd))
        case 1:
            guard bytes.count - index >= 16 else { return nil }
            headerLength = 16
            size = bytes.bigEndian(at: index + 8, width: 8)
        default: break
        }
        guard size >= headerLength, parentEnd >= start, size <= UInt64(parentEnd - start) else {
            throw .malformed("\(type)", offset: start)
        }
        return MP4BoxHeader(
            type: type, start: start, payloadStart: start + Int64(headerLength), end: start + Int64(size))
    }
}

/// A box in memory. Integers are read relative to the payload; a read behind the end of the payload throws
/// `malformed` with the type and the offset of this box.
struct MP4Box {
    let type: MP4FourCC
    /// The offset of the box in the file.
    let offset: Int64
    /// The bytes of the outermost box that was read; shared by all its descendants.
    let bytes: [UInt8]
    /// The offset of the first of ``bytes`` in the file.
    let base: Int64
    /// The payload in ``bytes``.
    let payload: Range<Int>

    /// - Parameters:
    ///   - header: the header of the box; the payload must be within `bytes`.
    ///   - bytes: bytes of the file.
    ///   - base: the offset of the first of these bytes in the file.
    init(_ header: MP4BoxHeader, bytes: [UInt8], base: Int64) {
        type = header.type
        offset = header.start
        self.bytes = bytes
        self.base = base
        payload = Int(header.payloadStart - base)..<Int(header.end - base)
    }

    /// The error for a contradiction in this box.
    var malformed: MediaError { .malformed("\(type)", offset: offset) }

    /// The child boxes of a container box.
    var children: MP4BoxChildren { MP4BoxChildren(self) }

    /// The box without the version and the flags at the beginning of its payload; nil if it is too short.
    var withoutVersion: MP4Box? {
        guard payload.count >= 4 else { return nil }
        let start = base + Int64(payload.lowerBound)
        let header = MP4BoxHeader(
            type: type, start: offset, payloadStart: start + 4, end: start + Int64(payload.count))
        return MP4Box(header, bytes: bytes, base: base)
    }

    /// The unsigned integer of `width` bytes (at most 8) at `index`.
    func uint(at index: Int, width: Int) throws(MediaError) -> UInt64 {
        guard index >= 0, width <= payload.count, index <= payload.count - width else { throw malformed }
        return bytes.bigEndian(at: payload.lowerBound + index, width: width)
    }

    func uint16(at index: Int) throws(MediaError) -> UInt16 { UInt16(try uint(at: index, width: 2)) }

    func uint32(at index: Int) throws(MediaError) -> UInt32 { UInt32(try uint(at: index, width: 4)) }

    /// The version of a full box (ISO/IEC 14496-12 §4.2).
    func version() throws(MediaError) -> UInt8 { UInt8(try uint(at: 0, width: 1)) }

    /// The flags of a full box.
    func flags() throws(MediaError) -> UInt32 { UInt32(try uint(at: 1, width: 3)) }
}

/// Iterates over the child boxes of a box without storing them. Fewer than 8 bytes at the end are ignored, because
/// QuickTime ends some lists with a 32-bit zero.
struct MP4BoxChildren {
    private let parent: MP4Box
    private var position: Int64

    init(_ parent: MP4Box) {
        self.parent = parent
        position = parent.base + Int64(parent.payload.lowerBound)
    }

    /// The next child; nil at the end.
    ///
    /// - Throws: `malformed` if a child is larger than its parent or smaller than its header.
    mutating func next() throws(MediaError) -> MP4Box? {
        let end = parent.base + Int64(parent.payload.upperBound)
        guard end - position >= 8 else { return nil }
        let header = try MP4BoxHeader.parse(parent.bytes, base: parent.base, at: position, parentEnd: end)
        guard let header, header.payloadStart <= end else { throw parent.malformed }
        position = header.end
        return MP4Box(header, bytes: parent.bytes, base: parent.base)
    }
}

/// The rows of a table in a box. The constructor proves that all rows are within the payload.
struct MP4Table {
    let box: MP4Box
    /// The number of rows.
    let count: Int
    private let start: Int
    private let rowLength: Int

    /// A table with a 32-bit number of rows at `countIndex` and the rows directly behind it.
    init(_ box: MP4Box, countAt countIndex: Int, rowLength: Int) throws(MediaError) {
        let count = Int(try box.uint32(at: countIndex))
        try self.init(box, start: countIndex + 4, count: count, rowLength: rowLength)
    }

    /// - Throws: `malformed` if `count` rows of `rowLength` bytes at `start` exceed the payload.
    init(_ box: MP4Box, start: Int, count: Int, rowLength: Int) throws(MediaError) {
        let (length, overflow) = count.multipliedReportingOverflow(by: rowLength)
        guard !overflow, start <= box.payload.count, length <= box.payload.count - start else { throw box.malformed }
        self.box = box
        self.count = count
        self.start = box.payload.lowerBound + start
        self.rowLength = rowLength
    }

    /// The unsigned integer of `width` bytes in a row, at `column` bytes from the beginning of the row.
    func uint(_ row: Int, at column: Int, width: Int) -> UInt64 {
        box.bytes.bigEndian(at: start + row * rowLength + column, width: width)
    }

    func uint32(_ row: Int, at column: Int = 0) -> UInt32 { UInt32(uint(row, at: column, width: 4)) }

    /// The sum of the integers of 32 bits at the beginning of the rows; they have no other column.
    func sum(_ rows: Range<Int>) -> Int64 {
        box.bytes.bigEndianSum(start + rows.lowerBound * 4..<start + rows.upperBound * 4)
    }

    /// The error for a contradiction in a row; the offset is the offset of the row in the file.
    func malformed(row: Int) -> MediaError {
        .malformed("\(box.type)", offset: box.base + Int64(start + row * rowLength))
    }
}
