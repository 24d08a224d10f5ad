import CacheCore

/// Time stamps of MPEG transport streams: 33 bits in units of 90 kHz, which wrap after 26.5 hours
/// (ISO/IEC 13818-1 §2.4.3.7).
enum TransportStreamClock {
    static let ticksPerSecond = 90_000.0
    private static let wrap: Int64 = 1 << 33

    /// The seconds from `start` to `end`; it is at most 13 hours earlier or later.
    static func seconds(from start: Int64, to end: Int64) -> Double {
        let ticks = ((end - start) % wrap + wrap) % wrap
        return Double(ticks >= wrap / 2 ? ticks - wrap : ticks) / ticksPerSecond
    }
}
