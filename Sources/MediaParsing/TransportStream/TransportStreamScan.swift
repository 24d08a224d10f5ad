import CacheCore

/// The time stamps in a part of a transport stream.
struct TransportStreamScan {
    struct Stamp {
        var pid: Int
        /// The stream ID of the PES packet; 0 for a program clock reference.
        var streamID: UInt8 = 0
        /// The position of the packet.
        var position: Int64
        /// In units of 90 kHz.
        var presentation: Int64
        var decoding: Int64
    }

    /// The time stamps of PES packets, ascending by position.
    private(set) var stamps: [Stamp] = []
    /// The program clock references, ascending by position.
    private(set) var clocks: [Stamp] = []
    /// The position of the first byte.
    let start: Int64
    /// The position behind the last complete packet.
    private(set) var end: Int64

    init(from start: Int64) {
        self.start = start
        end = start
    }

    /// Adds the packets in `bytes` from ``end`` on. Damaged parts are skipped.
    ///
    /// - Parameter visit: receives each packet.
    mutating func add(_ bytes: MediaBytes, size: Int64, visit: (TransportStreamPacket) -> Void = { _ in }) {
        while bytes.end - end >= 188 {
            guard let grid = TransportStreamGrid(in: bytes, at: end, size: size) else {
                guard bytes.end - end > 2 * size else { return }
                end += size
                continue
            }
            var position = grid.firstSync
            while let packet = TransportStreamPacket(bytes, at: position) {
                visit(packet)
                record(packet, at: position)
                position += size
            }
            end = position
            guard bytes.end - position >= 188 else { return }
            end += 1  // a damaged packet
        }
    }

    private mutating func record(_ packet: TransportStreamPacket, at position: Int64) {
        if let ticks = packet.clock {
            clocks.append(Stamp(pid: packet.pid, position: position, presentation: ticks, decoding: ticks))
        }
        guard let (presentation, decoding) = packet.timestamps else { return }
        stamps.append(
            Stamp(
                pid: packet.pid, streamID: packet.streamID ?? 0, position: position, presentation: presentation,
                decoding: decoding))
    }
}
