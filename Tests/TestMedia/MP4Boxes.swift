/// Builds boxes by hand.
package struct BoxBuilder {
    package var bytes: [UInt8] = []

    package init(_ parts: [UInt8]...) { bytes = parts.flatMap { $0 } }

    package static func u8(_ values: Int...) -> [UInt8] { values.map { UInt8(truncatingIfNeeded: $0) } }
    package static func u16(_ values: Int...) -> [UInt8] { values.flatMap { integer($0, 2) } }
    package static func u32(_ values: Int...) -> [UInt8] { values.flatMap { integer($0, 4) } }
    package static func u64(_ values: Int...) -> [UInt8] { values.flatMap { integer($0, 8) } }

    package static func integer(_ value: Int, _ width: Int) -> [UInt8] {
        (0..<width).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    package static func box(_ type: String, _ parts: [UInt8]...) -> [UInt8] {
        let payload = parts.flatMap { $0 }
        return u32(payload.count + 8) + Array(type.utf8) + payload
    }

    /// A full box of version 0 without flags.
    package static func full(_ type: String, version: Int = 0, flags: Int = 0, _ parts: [UInt8]...) -> [UInt8] {
        box(type, u32(version << 24 | flags) + parts.flatMap { $0 })
    }
}

/// A movie with one track and replaceable boxes. The file is `ftyp`, `moov`, `mdat`.
package struct MovieBuilder {
    package typealias B = BoxBuilder

    package var movieScale = 1000
    package var duration = 10_000
    package var trackScale = 1000
    package var handler = "vide"
    /// Ten samples of 100 bytes and one second in five chunks; the offsets are relative to the payload of `mdat`.
    package var stts = B.full("stts", B.u32(1, 10, 1000))
    package var ctts: [UInt8] = []
    package var stss: [UInt8] = B.full("stss", B.u32(2, 1, 6))
    package var stsc = B.full("stsc", B.u32(1, 1, 2, 1))
    package var stsz = B.full("stsz", B.u32(100, 10))
    package var chunkOffsets: [Int] = [0, 200, 400, 600, 800]
    package var wide = false
    package var edits: [UInt8] = []
    package var extras: [UInt8] = []
    package var movieExtras: [UInt8] = []
    package var mediaLength = 1000
    package var tracks = 1
    package var omitsMediaHeader = false
    /// The packed language of the media header.
    package var language = 0
    /// The size of the picture in pixels.
    package var picture = (width: 0, height: 0)

    package static let ftyp = B.box("ftyp", Array("isom".utf8), B.u32(512), Array("isom".utf8))

    package func moov(mediaStart: Int) -> [UInt8] {
        let offsets =
            wide
            ? B.full("co64", B.u32(chunkOffsets.count), chunkOffsets.flatMap { B.u64($0 &+ mediaStart) })
            : B.full("stco", B.u32(chunkOffsets.count), chunkOffsets.flatMap { B.u32($0 &+ mediaStart) })
        let stsd = B.full("stsd", B.u32(1), B.box("avc1", [UInt8](repeating: 0, count: 70)))
        let stbl = B.box("stbl", stsd, stts, ctts, stss, stsc, stsz, offsets, extras)
        let mdhd = omitsMediaHeader ? [] : B.full("mdhd", B.u32(0, 0, trackScale, 10_000, language << 16))
        let hdlr = B.full("hdlr", B.u32(0), Array(handler.utf8), B.u32(0, 0, 0), [0])
        let mdia = B.box("mdia", mdhd, hdlr, B.box("minf", stbl))
        let tkhd = B.full(
            "tkhd", B.u32(0, 0, 1, 0, duration), [UInt8](repeating: 0, count: 52),
            B.u32(picture.width << 16, picture.height << 16))
        let trak = B.box("trak", tkhd, edits, mdia)
        let mvhd = B.full("mvhd", B.u32(0, 0, movieScale, duration), [UInt8](repeating: 0, count: 80))
        return B.box("moov", mvhd + (0..<tracks).flatMap { _ in trak } + movieExtras)
    }

    package init() {}

    /// `ftyp`, `mdat`, `moov`: the index is at the end.
    package func tailFile() -> [UInt8] {
        Self.ftyp + B.box("mdat", [UInt8](repeating: 1, count: mediaLength))
            + moov(mediaStart: Self.ftyp.count + 8)
    }

    package func file() -> [UInt8] {
        let length = moov(mediaStart: 0).count
        let mediaStart = Self.ftyp.count + length + 8
        return Self.ftyp + moov(mediaStart: mediaStart)
            + B.box("mdat", [UInt8](repeating: 1, count: mediaLength))
    }

    package static func elst(_ rows: [(duration: Int, time: Int)], version: Int = 0) -> [UInt8] {
        let table = rows.flatMap { row in
            (version == 1 ? B.u64(row.duration, row.time) : B.u32(row.duration, row.time)) + B.u32(0x10000)
        }
        return B.box("edts", B.full("elst", version: version, B.u32(rows.count), table))
    }
}
