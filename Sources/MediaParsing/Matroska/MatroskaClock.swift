import CacheCore

/// The clock of a Matroska file.
struct MatroskaClock: Hashable, Sendable {
    let secondsPerTick: Double
    /// The first time of the file in seconds; players count from there.
    let start: Double
    /// The number of the first video track; nil: there is none.
    let video: Int64?
    /// The numbers of the audio tracks.
    let audio: Set<Int64>

    /// A time in seconds from the beginning of the presentation.
    func seconds(_ ticks: UInt64) -> Double { Double(ticks) * secondsPerTick - start }

    /// The timestamp of a cluster in ticks, which is its first child or follows CRC-32; nil if it is not in `bytes`.
    static func timestamp(of cluster: EBMLElement, _ bytes: MediaBytes) -> UInt64? {
        var position = cluster.content
        while position < bytes.end, let child = try? EBMLElement(bytes, at: position), let end = child.end {
            if child.id == MatroskaID.timestamp {
                return end <= bytes.end ? bytes.part(child.content..<end).unsignedInteger : nil
            }
            position = end
        }
        return nil
    }
}

/// The header of a block (RFC 9559 §10.2).
struct MatroskaBlock {
    let track: Int64
    /// The time relative to the cluster in ticks.
    let offset: Int16

    /// The header of a SimpleBlock, or of the Block at the beginning of a BlockGroup; nil for another element, and if
    /// the header is not in `bytes`.
    init?(_ element: EBMLElement, _ bytes: MediaBytes) {
        var content = element.content
        switch element.id {
        case MatroskaID.simpleBlock: break
        case MatroskaID.blockGroup:
            guard let block = try? EBMLElement(bytes, at: content), block.id == MatroskaID.block else { return nil }
            content = block.content
        default: return nil
        }
        guard let first = bytes.byte(at: content), first != 0 else { return nil }
        let width = first.leadingZeroBitCount + 1
        guard let coded = bytes.number(at: content, count: width),
            let offset = bytes.number(at: content + Int64(width), count: 2)
        else { return nil }
        track = Int64(coded & (1 << UInt64(7 * width) - 1))
        self.offset = Int16(bitPattern: UInt16(offset))
    }
}
