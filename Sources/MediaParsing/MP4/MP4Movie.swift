import CacheCore

/// The contents of a `moov` box: the tracks with their sample tables, which stay in the bytes of the box.
struct MP4Movie {
    /// The default values of the samples of a track in fragments (`trex`, ISO/IEC 14496-12 §8.8.3).
    struct FragmentDefaults: Hashable {
        var duration: UInt32 = 0
        var size: UInt32 = 0
        var flags: UInt32 = 0
    }

    /// The largest number of tracks.
    static let trackLimit = 128

    /// Units per second of the durations of the movie and of the edits.
    private(set) var timeScale: UInt32 = 0
    /// The duration in units of ``timeScale``; 0: unknown.
    private(set) var duration: UInt64 = 0
    /// The duration of all fragments in units of ``timeScale`` (`mehd`); 0: unknown.
    private(set) var fragmentDuration: UInt64 = 0
    private(set) var tracks: [MP4Track] = []
    /// The formats of the pictures (`udta`).
    private(set) var coverCodecs: [String] = []
    private(set) var chapters: [MediaIndex.Chapter] = []
    /// Whether fragments can follow (`mvex`).
    private(set) var isFragmented = false
    /// The defaults by track.
    private(set) var defaults: [UInt32: FragmentDefaults] = [:]

    /// - Throws: `unsupported` for a compressed movie box or a reference movie, `malformed` and `tooLarge`.
    init(_ moov: MP4Box) throws(MediaError) {
        var children = moov.children
        while let child = try children.next() {
            switch child.type {
            case "mvhd": try parseHeader(child)
            case "trak":
                guard tracks.count < Self.trackLimit else {
                    throw .tooLarge("The file has more than \(Self.trackLimit) tracks.")
                }
                tracks.append(try MP4Track(child))
            case "mvex": try parseExtension(child)
            case "udta":
                chapters = child.chapters
                coverCodecs += child.coverCodecs
            case "cmov": throw .unsupported("The movie box is compressed (cmov)")
            case "rmra": throw .unsupported("The moov box refers to other movies (rmra)")
            default: break
            }
        }
        guard timeScale > 0 else { throw .malformed("mvhd", offset: moov.offset) }
        guard !tracks.isEmpty else { throw .unsupported("The moov box contains no trak box.") }
    }

    /// The duration of the movie header, otherwise of the longest track header, in seconds; nil: unknown.
    var durationSeconds: Double? {
        let units = duration > 0 ? duration : tracks.map(\.movieDuration).max() ?? 0
        return units > 0 ? Double(units) / Double(timeScale) : nil
    }

    private mutating func parseHeader(_ box: MP4Box) throws(MediaError) {
        let isLong = try box.version() == 1
        timeScale = try box.uint32(at: isLong ? 20 : 12)
        guard timeScale > 0 else { throw box.malformed }
        duration = try box.duration(at: isLong ? 24 : 16, isLong: isLong)
    }

    private mutating func parseExtension(_ box: MP4Box) throws(MediaError) {
        isFragmented = true
        var children = box.children
        while let child = try children.next() {
            switch child.type {
            case "mehd":
                fragmentDuration = try child.duration(at: 4, isLong: try child.version() == 1)
            case "trex" where defaults.count < Self.trackLimit:
                defaults[try child.uint32(at: 4)] = FragmentDefaults(
                    duration: try child.uint32(at: 12), size: try child.uint32(at: 16),
                    flags: try child.uint32(at: 20))
            default: break
            }
        }
    }
}

extension MP4Box {
    /// A duration of 32 or 64 bits. All bits set mean an unknown duration, returned as 0.
    func duration(at index: Int, isLong: Bool) throws(MediaError) -> UInt64 {
        let value = try uint(at: index, width: isLong ? 8 : 4)
        return value == (isLong ? UInt64.max : UInt64(UInt32.max)) ? 0 : value
    }
}

/// One `trak` box.
struct MP4Track {
    private(set) var id: UInt32 = 0
    private(set) var kind = TrackKind.other
    private(set) var codec = ""
    private(set) var description = MediaIndex.Description()
    /// Units per second of the sample times.
    private(set) var timeScale: UInt32 = 0
    /// The duration in units of the time scale of the movie (`tkhd`); 0: unknown.
    private(set) var movieDuration: UInt64 = 0
    private(set) var edits: [MP4Edit] = []
    /// The media time before the first edit in seconds, at most ``longestEditLead``.
    var editSeconds: Double {
        guard let time = edits.lazy.compactMap(\.mediaTime).first else { return 0 }
        return min(Self.longestEditLead, Double(time) / Double(timeScale))
    }

    /// Files that were cut at a key frame keep the media from there on; a longer lead is not read.
    private static let longestEditLead = 10.0
    /// The sample tables; nil if the box `stbl` is missing or empty.
    private(set) var samples: MP4SampleTable?

    /// - Throws: `malformed` if a box is contradictory or a mandatory box is missing, `tooLarge` and `unsupported`.
    init(_ trak: MP4Box) throws(MediaError) {
        var children = trak.children
        while let child = try children.next() {
            switch child.type {
            case "tkhd":
                let isLong = try child.version() == 1
                id = try child.uint32(at: isLong ? 20 : 12)
                movieDuration = try child.duration(at: isLong ? 28 : 20, isLong: isLong)
                let size = child.pictureSize
                (description.width, description.height) = (size?.width, size?.height)
            case "edts": try parseEdits(child)
            case "mdia": try parseMedia(child)
            default: break
            }
        }
        guard timeScale > 0 else { throw .malformed("mdhd", offset: trak.offset) }
    }

    private mutating func parseEdits(_ edts: MP4Box) throws(MediaError) {
        var children = edts.children
        while let child = try children.next() {
            if child.type == "elst" { edits = try MP4Edit.parse(child) }
        }
    }

    private mutating func parseMedia(_ mdia: MP4Box) throws(MediaError) {
        var children = mdia.children
        while let child = try children.next() {
            switch child.type {
            case "mdhd":
                timeScale = try child.uint32(at: try child.version() == 1 ? 20 : 12)
                guard timeScale > 0 else { throw child.malformed }
                description.language = child.mediaLanguage
            case "hdlr": kind = Self.kind(MP4FourCC(try child.uint32(at: 8)))
            case "minf":
                var grandchildren = child.children
                while let grandchild = try grandchildren.next() {
                    if grandchild.type == "stbl" { try parseTables(grandchild) }
                }
            default: break
            }
        }
    }

    private mutating func parseTables(_ stbl: MP4Box) throws(MediaError) {
        let table = try MP4SampleTable(stbl)
        codec = table.codec
        samples = table
    }

    private static func kind(_ handler: MP4FourCC) -> TrackKind {
        switch handler {
        case "vide": .video
        case "soun": .audio
        case "subt", "sbtl", "text", "clcp": .subtitles
        default: .other
        }
    }
}
