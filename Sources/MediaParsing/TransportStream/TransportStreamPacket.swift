import CacheCore

/// A packet of an MPEG transport stream (ISO/IEC 13818-1 §2.4.3).
struct TransportStreamPacket {
    let pid: Int
    /// Whether a PES packet or a section begins in the payload.
    let startsUnit: Bool
    /// The program clock reference in units of 90 kHz (33 bits); nil: none.
    let clock: Int64?
    /// The payload; empty if there is none or if it is scrambled.
    let payload: MediaBytes

    /// Nil if the packet at `position` is not completely in `bytes`, or damaged.
    init?(_ bytes: MediaBytes, at position: Int64) {
        guard let head = bytes.number(at: position, count: 4), head >> 24 == 0x47, head & 0x80_0000 == 0,
            bytes.end - position >= 188
        else { return nil }
        pid = Int(head >> 8 & 0x1FFF)
        startsUnit = head & 0x40_0000 != 0
        var start = position + 4
        var clock: Int64?
        if head & 0x20 != 0, let length = bytes.byte(at: start), length <= 183 {
            if length >= 7, let flags = bytes.byte(at: start + 1), flags & 0x10 != 0 {
                clock = bytes.number(at: start + 2, count: 6).map { Int64($0 >> 15) }
            }
            start += 1 + Int64(length)
        }
        self.clock = clock
        let hasPayload = head & 0x10 != 0 && head & 0xC0 == 0
        payload = bytes.part(start..<(hasPayload ? position + 188 : start))
    }

    /// The decoding time stamp of the PES packet that begins in the payload, or the presentation time stamp if they
    /// are equal, in units of 90 kHz (§2.4.3.7); nil: none.
    var timestamps: (presentation: Int64, decoding: Int64)? {
        let start = payload.offset
        guard startsUnit, payload.number(at: start, count: 3) == 1, let flags = payload.byte(at: start + 7),
            flags & 0x80 != 0, let presentation = timestamp(at: start + 9)
        else { return nil }
        let decoding = flags & 0x40 != 0 ? timestamp(at: start + 14) : nil
        return (presentation, decoding ?? presentation)
    }

    /// The stream ID of the PES packet that begins in the payload (§2.4.3.7); nil: none begins.
    var streamID: UInt8? {
        startsUnit && payload.number(at: payload.offset, count: 3) == 1 ? payload.byte(at: payload.offset + 3) : nil
    }

    private func timestamp(at position: Int64) -> Int64? {
        let markers: UInt64 = 0x1_0001_0001
        guard let word = payload.number(at: position, count: 5), word & markers == markers else { return nil }
        let (high, middle, low) = (word >> 33 & 7, word >> 17 & 0x7FFF, word >> 1 & 0x7FFF)
        return Int64(high << 30 | middle << 15 | low)
    }
}
