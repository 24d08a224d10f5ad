import CacheCore

/// The sample tables of a track (`stbl`, ISO/IEC 14496-12 §8.5 to §8.7). The tables stay in the bytes of the box.
struct MP4SampleTable {
    /// The sizes of the samples.
    enum Sizes {
        /// All samples have the same number of bytes.
        case uniform(UInt32)
        /// `frames` samples occupy `bytes` together: compressed sound of QuickTime, sound description version 1.
        case packed(frames: UInt32, bytes: UInt32)
        /// A table with 4, 8, 16 or 32 bits per sample.
        case table(MP4Table, bits: Int)
    }

    /// The format of the samples as four characters.
    private(set) var codec = ""
    private(set) var sampleCount: Int64 = 0
    private(set) var sizes = Sizes.uniform(0)
    /// The decoding durations: rows of (number of samples, duration).
    private(set) var durations: MP4Table?
    /// The composition offsets: rows of (number of samples, offset).
    private(set) var compositionOffsets: MP4Table?
    /// The numbers of the sync samples, from 1; nil: each sample is a sync sample.
    private(set) var syncSamples: MP4Table?
    /// Rows of (first chunk from 1, samples per chunk, index of the description).
    private(set) var chunkRuns: MP4Table?
    /// The offsets of the chunks in the file.
    private(set) var chunkOffsets: MP4Table?
    /// The number of bytes of an offset: 4 (`stco`) or 8 (`co64`).
    private(set) var offsetWidth = 4

    /// - Throws: `malformed` if a table exceeds its box, or if samples exist but a mandatory table is missing.
    init(_ stbl: MP4Box) throws(MediaError) {
        var soundLayout: SoundLayout?
        var children = stbl.children
        while let child = try children.next() {
            switch child.type {
            case "stsd": soundLayout = try parseDescription(child)
            case "stts": durations = try MP4Table(child, countAt: 4, rowLength: 8)
            case "ctts": compositionOffsets = try MP4Table(child, countAt: 4, rowLength: 8)
            case "stss": syncSamples = try MP4Table(child, countAt: 4, rowLength: 4)
            case "stsc": chunkRuns = try MP4Table(child, countAt: 4, rowLength: 12)
            case "stsz", "stz2": try parseSizes(child)
            case "stco", "co64":
                offsetWidth = child.type == "co64" ? 8 : 4
                chunkOffsets = try MP4Table(child, countAt: 4, rowLength: offsetWidth)
            default: break
            }
        }
        if sampleCount > 0 {
            guard let durations, durations.count > 0, chunkRuns != nil, chunkOffsets != nil else {
                throw stbl.malformed
            }
        }
        applySoundLayout(soundLayout)
    }

    private mutating func parseSizes(_ box: MP4Box) throws(MediaError) {
        sampleCount = Int64(try box.uint32(at: 8))
        if box.type == "stsz" {
            let size = try box.uint32(at: 4)
            sizes = size > 0 ? .uniform(size) : .table(try MP4Table(box, countAt: 8, rowLength: 4), bits: 32)
            return
        }
        let bits = Int(try box.uint(at: 7, width: 1))
        switch bits {
        case 4: sizes = .table(try MP4Table(box, start: 12, count: Int(sampleCount + 1) / 2, rowLength: 1), bits: 4)
        case 8, 16: sizes = .table(try MP4Table(box, countAt: 8, rowLength: bits / 8), bits: bits)
        default: throw box.malformed
        }
    }
}

extension MP4SampleTable {
    /// The fields of a QuickTime sound description that determine the bytes of a sample.
    private struct SoundLayout {
        /// Bytes of one sample of all channels without compression.
        var frameBytes: UInt32
        /// Samples per packet and bytes per packet of all channels (version 1); nil: not stated.
        var packet: (frames: UInt32, bytes: UInt32)?
    }

    private mutating func parseDescription(_ box: MP4Box) throws(MediaError) -> SoundLayout? {
        guard try box.uint32(at: 4) > 0 else { return nil }
        let length = Int(try box.uint32(at: 8))
        guard length >= 8, length <= box.payload.count - 8 else { throw box.malformed }
        codec = MP4FourCC(try box.uint32(at: 12)).description
        // The entry begins at 8: size, type, 6 reserved bytes, data reference index, then the sound fields at 24.
        guard length >= 36 else { return nil }
        let channels = UInt32(try box.uint16(at: 32))
        let bits = UInt32(try box.uint16(at: 34))
        var layout = SoundLayout(frameBytes: channels * (bits / 8))
        if try box.uint16(at: 24) == 1, length >= 52 {
            layout.packet = (frames: try box.uint32(at: 44), bytes: try box.uint32(at: 52))
        }
        return layout
    }

    /// Replaces the sample size 1 of QuickTime sound; it means that samples are counted uncompressed.
    private mutating func applySoundLayout(_ layout: SoundLayout?) {
        guard let layout, case .uniform(1) = sizes, let durations, durations.count == 1,
            durations.uint32(0, at: 4) == 1
        else { return }
        if let packet = layout.packet, packet.frames > 0, packet.bytes > 0 {
            sizes = .packed(frames: packet.frames, bytes: packet.bytes)
        } else if layout.frameBytes > 0 {
            sizes = .uniform(layout.frameBytes)
        }
    }
}
