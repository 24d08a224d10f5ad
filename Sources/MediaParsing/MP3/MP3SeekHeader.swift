import CacheCore

/// The header that encoders write to the first frame of an MP3 file: number of frames and a table of positions.
///
/// Sources: Xing, "VBR header" SDK (Xing and Info, with LAME's additions behind it), and Fraunhofer's VBRI header.
struct MP3SeekHeader {
    /// The number of audio frames; nil: not stated.
    private(set) var frames: Int64?
    /// The number of bytes from the first frame on; nil: not stated.
    private(set) var byteCount: Int64?
    /// The position of each entry relative to the first frame as a share of the bytes, and its time as a share of the
    /// duration; empty without a table.
    private(set) var table: [(position: Double, time: Double)] = []
    /// The smallest step of positions in the table as a share of the bytes.
    private(set) var resolution = 0.0
    /// Whether the bit rate is constant (`Info`): times are then computed more exactly without the table.
    private(set) var isConstant = false

    /// The length of a VBRI header without its table, from the beginning of the frame.
    private static let vbriLength: Int64 = 36 + 26

    /// Parses the frame at `position`, which `header` begins. Nil if the frame has no such header.
    ///
    /// - Parameter bytes: the frame; a VBRI table can exceed it, see ``length(_:at:)``.
    init?(_ bytes: MediaBytes, at position: Int64, _ header: MP3FrameHeader) {
        // A CRC of 2 bytes precedes the side information; some encoders count it.
        for offset in [header.sideInformationEnd, header.sideInformationEnd + 2] {
            let start = position + offset
            if bytes.holds("Xing", at: start) || bytes.holds("Info", at: start) {
                parseXing(bytes, at: start)
                return
            }
        }
        guard bytes.holds("VBRI", at: position + 36) else { return nil }
        parseVBRI(bytes, at: position + 36)
    }

    /// The number of bytes that a VBRI header with its table needs from the beginning of the frame at `position`; 0
    /// without such a header.
    static func length(_ bytes: MediaBytes, at position: Int64) -> Int64 {
        guard bytes.holds("VBRI", at: position + 36), let entries = bytes.number(at: position + 54, count: 2),
            let size = bytes.number(at: position + 58, count: 2), size <= 4
        else { return 0 }
        return vbriLength + Int64(entries * size)
    }

    private mutating func parseXing(_ bytes: MediaBytes, at start: Int64) {
        guard let flags = bytes.number(at: start + 4, count: 4) else { return }
        var next = start + 8
        if flags & 1 != 0 {
            frames = bytes.number(at: next, count: 4).map(Int64.init)
            next += 4
        }
        if flags & 2 != 0 {
            byteCount = bytes.number(at: next, count: 4).map(Int64.init)
            next += 4
        }
        isConstant = bytes.holds("Info", at: start)
        guard flags & 4 != 0 else { return }
        let entries = bytes.part(next..<next + 100).bytes
        guard entries.count == 100 else { return }
        table = entries.enumerated().map { (Double($0.element) / 256, Double($0.offset) / 100) }
        resolution = 1.0 / 256
    }

    private mutating func parseVBRI(_ bytes: MediaBytes, at start: Int64) {
        byteCount = bytes.number(at: start + 10, count: 4).map(Int64.init)
        frames = bytes.number(at: start + 14, count: 4).map(Int64.init)
        guard let entries = bytes.number(at: start + 18, count: 2), let scale = bytes.number(at: start + 20, count: 2),
            let size = bytes.number(at: start + 22, count: 2), let step = bytes.number(at: start + 24, count: 2),
            let byteCount, let frames, byteCount > 0, frames > 0, step > 0, (1...4).contains(size)
        else { return }
        var sum = 0.0
        for entry in 0..<Int64(entries) {
            let place = start + 26 + entry * Int64(size)
            guard let value = bytes.number(at: place, count: Int(size)) else { break }
            sum += Double(value * scale)
            table.append((sum / Double(byteCount), Double((entry + 1) * Int64(step)) / Double(frames)))
        }
    }
}
