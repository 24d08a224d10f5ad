package import CacheCore
import Synchronization

/// Body bytes of the loopback upstream, computed from seed and offset, so that assets of any size need no memory.
///
/// The bytes repeat a pattern of prime length, with a stamp of the offset in every 512 bytes. Each run of 1 KiB
/// therefore occurs at one offset only.
package enum LoopbackBody {
    private static let period = 65_521
    private static let stampSpacing: Int64 = 512
    private static let patterns = Mutex<[UInt64: [UInt8]]>([:])

    /// The bytes of `range` under `seed`.
    package static func bytes(at range: ByteRange, seed: UInt64) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Int(range.length)) { buffer, count in
            fill(UnsafeMutableRawBufferPointer(buffer), from: range.lowerBound, seed: seed)
            count = Int(range.length)
        }
    }

    /// Overwrites `buffer` with the bytes from `offset` on.
    package static func fill(_ buffer: UnsafeMutableRawBufferPointer, from offset: Int64, seed: UInt64) {
        let pattern = pattern(for: seed)
        pattern.withUnsafeBytes { source in
            var written = 0
            while written < buffer.count {
                let phase = Int((offset + Int64(written)) % Int64(period))
                let count = min(period - phase, buffer.count - written)
                let piece = UnsafeRawBufferPointer(rebasing: source[phase..<phase + count])
                UnsafeMutableRawBufferPointer(rebasing: buffer[written..<written + count]).copyMemory(from: piece)
                written += count
            }
        }
        stamp(buffer, from: offset, seed: seed)
    }

    // `while` loops instead of ranges and closures, because the latter are a hundred times slower without optimisation.

    private static func stamp(_ buffer: UnsafeMutableRawBufferPointer, from offset: Int64, seed: UInt64) {
        var mark = offset - offset % stampSpacing
        while mark < offset + Int64(buffer.count) {
            let word = mixed(seed ^ UInt64(mark))
            var index = 0
            while index < 8 {
                let place = Int(mark - offset) + index
                if place >= 0, place < buffer.count { buffer[place] = UInt8(truncatingIfNeeded: word >> (8 * index)) }
                index += 1
            }
            mark += stampSpacing
        }
    }

    private static func pattern(for seed: UInt64) -> [UInt8] {
        patterns.withLock { known in
            if let pattern = known[seed] { return pattern }
            let made = [UInt8](unsafeUninitializedCapacity: period) { buffer, count in
                while count < period {
                    buffer[count] = UInt8(truncatingIfNeeded: mixed(seed &* 0x9E37_79B9 &+ UInt64(count)))
                    count += 1
                }
            }
            known[seed] = made
            return made
        }
    }

    /// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
    private static func mixed(_ value: UInt64) -> UInt64 {
        var word = value &+ 0x9E37_79B9_7F4A_7C15
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}
