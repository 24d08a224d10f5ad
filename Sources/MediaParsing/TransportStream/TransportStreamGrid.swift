import CacheCore

/// The places of the packets in an MPEG transport stream: 188 bytes (ISO/IEC 13818-1 §2.4.3.2), or 192 bytes with a
/// preceding time stamp (BDAV MPEG-2, `.m2ts`).
struct TransportStreamGrid: Hashable {
    /// 188 or 192.
    let size: Int64
    /// The position of the sync byte of the first packet.
    let firstSync: Int64

    /// The number of sync bytes at equal distances that prove a grid.
    private static let proof: Int64 = 5
    private static let sync: UInt8 = 0x47

    /// Finds the first packet from `start` on: 5 sync bytes at equal distances, or all up to the end of shorter bytes,
    /// at least 2.
    ///
    /// - Parameter size: the length of packets; nil: 188 or 192.
    init?(in bytes: MediaBytes, at start: Int64, size: Int64? = nil) {
        let sizes: [Int64] = if let size { [size] } else { [188, 192] }
        // At the beginning of a file, packets start at once; elsewhere within one packet.
        let first = max(start, bytes.offset)
        for position in first..<max(first, min(bytes.end, first + 192)) where bytes.byte(at: position) == Self.sync {
            for size in sizes {
                let available = (bytes.end - position - 1) / size + 1
                let needed = min(Self.proof, available)
                guard needed >= 2, (1..<needed).allSatisfy({ bytes.byte(at: position + $0 * size) == Self.sync })
                else { continue }
                self.size = size
                firstSync = position
                return
            }
        }
        return nil
    }

    /// Whether the bytes begin with at least 3 packets, the first one at `start`.
    static func begins(_ bytes: MediaBytes, at start: Int64) -> Bool {
        guard let grid = TransportStreamGrid(in: bytes, at: start) else { return false }
        return grid.firstSync == start + grid.size - 188 && bytes.end - grid.firstSync > 2 * grid.size
    }
}
