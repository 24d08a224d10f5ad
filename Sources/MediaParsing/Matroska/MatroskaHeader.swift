import CacheCore

/// The content of the elements of a Matroska segment that describe it: SeekHead, Info, Tracks and Cues
/// (RFC 9559 §5.1).
struct MatroskaHeader {
    /// A cue of one track (RFC 9559 §5.1.5.1).
    struct Cue {
        var track: Int64
        /// In units of the timestamp scale.
        var time: UInt64
        /// The position of the cluster in the file.
        var cluster: Int64
        /// The offset of the cued block from the content of its cluster; nil: not stated.
        var relative: Int64?
    }

    /// The largest numbers of entries; files beyond are rejected.
    enum Limit {
        static let tracks = 256
        static let seeks = 64
        static let cues = 1_000_000
    }

    /// The content of the segment, within the file.
    let segment: ByteRange
    /// The nanoseconds of one tick.
    private(set) var timestampScale: UInt64 = 1_000_000
    private var durationInTicks: Double?
    private(set) var tracks: [MediaIndex.Track] = []
    /// The seconds by which the frames of a track precede their timestamps (RFC 9559 §5.1.4.1.28).
    private(set) var codecDelays: [Int64: Double] = [:]
    private(set) var cues: [Cue] = []
    private(set) var chapters: [MediaIndex.Chapter] = []
    /// The IDs and positions of elements that SeekHead elements name.
    private(set) var seeks: [(id: UInt32, position: Int64)] = []
    /// The IDs of the elements that were parsed.
    private(set) var parsed: Set<UInt32> = []

    init(segment: ByteRange) {
        self.segment = segment
    }

    /// The duration in seconds; nil: unknown.
    var duration: Double? {
        durationInTicks.map { $0 * secondsPerTick }.flatMap { $0.isFinite && $0 > 0 && $0 < 1e9 ? $0 : nil }
    }

    /// The length of a tick in seconds.
    var secondsPerTick: Double { Double(timestampScale) / 1e9 }

    /// Whether the content of an element is needed by ``add(_:_:)``.
    static func needs(_ id: UInt32) -> Bool {
        id == MatroskaID.seekHead || id == MatroskaID.info || id == MatroskaID.tracks || id == MatroskaID.cues
            || id == MatroskaID.chapters
    }

    /// Parses the content of a SeekHead, Info, Tracks, Cues or Chapters element. All but the first count once.
    mutating func add(_ id: UInt32, _ content: MediaBytes) throws(MediaError) {
        let isNew = parsed.insert(id).inserted
        switch id {
        case MatroskaID.seekHead: try addSeekHead(content)
        case MatroskaID.info where isNew: try addInfo(content)
        case MatroskaID.tracks where isNew: try addTracks(content)
        case MatroskaID.cues where isNew: try addCues(content)
        case MatroskaID.chapters where isNew: chapters = content.matroskaChapters
        default: break
        }
    }

    private mutating func addSeekHead(_ content: MediaBytes) throws(MediaError) {
        var entries = EBMLChildren(content, of: "SeekHead")
        while let entry = try entries.next() {
            guard entry.id == MatroskaID.seek, seeks.count < Limit.seeks else { continue }
            var fields = EBMLChildren(entry.content, of: "Seek")
            var id: UInt32?
            var position: Int64?
            while let field = try fields.next() {
                switch field.id {
                case MatroskaID.seekID: id = field.content.unsignedInteger.flatMap { UInt32(exactly: $0) }
                case MatroskaID.seekPosition: position = self.position(field.content)
                default: break
                }
            }
            if let id, let position { seeks.append((id, position)) }
        }
    }

    private mutating func addInfo(_ content: MediaBytes) throws(MediaError) {
        var fields = EBMLChildren(content, of: "Info")
        while let field = try fields.next() {
            switch field.id {
            case MatroskaID.timestampScale:
                guard let scale = field.content.unsignedInteger, (1...1_000_000_000_000).contains(scale) else {
                    throw .malformed("Info: TimestampScale", offset: field.content.offset)
                }
                timestampScale = scale
            case MatroskaID.duration: durationInTicks = field.content.float
            default: break
            }
        }
    }

    private mutating func addTracks(_ content: MediaBytes) throws(MediaError) {
        var entries = EBMLChildren(content, of: "Tracks")
        while let entry = try entries.next() {
            guard entry.id == MatroskaID.trackEntry else { continue }
            guard tracks.count < Limit.tracks else { throw .tooLarge("Tracks: more than \(Limit.tracks) tracks") }
            var track = MediaIndex.Track(id: 0, kind: .other, codec: "")
            var delay: UInt64?
            var fields = EBMLChildren(entry.content, of: "TrackEntry")
            while let field = try fields.next() {
                switch field.id {
                case MatroskaID.trackNumber: track.id = field.content.unsignedInteger.flatMap(Int64.init(exactly:)) ?? 0
                case MatroskaID.trackType: track.kind = Self.kind(field.content.unsignedInteger)
                case MatroskaID.codecID: track.codec = field.content.shortText
                case MatroskaID.languageTag: track.description.language = field.content.shortText
                case MatroskaID.language where track.description.language == nil:
                    let language = field.content.shortText
                    track.description.language = language == "und" ? nil : language
                case MatroskaID.video:
                    (track.description.width, track.description.height) = field.content.matroskaPictureSize
                case MatroskaID.codecDelay: delay = field.content.unsignedInteger
                default: break
                }
            }
            guard track.id > 0, !tracks.contains(where: { $0.id == track.id }) else {
                throw .malformed("Tracks: TrackNumber \(track.id)", offset: entry.content.offset)
            }
            tracks.append(track)
            codecDelays[track.id] = delay.map { Double($0) / 1e9 }
        }
    }

    /// The kind of a track by its TrackType (RFC 9559 §5.1.4.1.3).
    private static func kind(_ type: UInt64?) -> TrackKind {
        switch type {
        case 1: .video
        case 2: .audio
        case 17: .subtitles
        default: .other
        }
    }

    /// Cues of clusters behind the end of a truncated file are ignored.
    private mutating func addCues(_ content: MediaBytes) throws(MediaError) {
        var points = EBMLChildren(content, of: "Cues")
        while let point = try points.next() {
            guard point.id == MatroskaID.cuePoint else { continue }
            var fields = EBMLChildren(point.content, of: "CuePoint")
            var time: UInt64?
            let first = cues.count
            while let field = try fields.next() {
                if field.id == MatroskaID.cueTime { time = field.content.unsignedInteger }
                guard field.id == MatroskaID.cueTrackPositions, let cue = try cue(field.content) else { continue }
                guard cues.count < Limit.cues else { throw .tooLarge("Cues: more than \(Limit.cues) cues") }
                cues.append(cue)
            }
            guard let time else { throw .malformed("Cues: CuePoint without CueTime", offset: point.content.offset) }
            for index in first..<cues.count { cues[index].time = time }
        }
    }

    private func cue(_ content: MediaBytes) throws(MediaError) -> Cue? {
        var fields = EBMLChildren(content, of: "CueTrackPositions")
        var cue = Cue(track: 0, time: 0, cluster: -1)
        while let field = try fields.next() {
            switch field.id {
            case MatroskaID.cueTrack: cue.track = field.content.unsignedInteger.flatMap(Int64.init(exactly:)) ?? 0
            case MatroskaID.cueClusterPosition: cue.cluster = position(field.content) ?? -1
            case MatroskaID.cueRelativePosition:
                cue.relative = field.content.unsignedInteger.flatMap(Int64.init(exactly:))
            default: break
            }
        }
        return segment.contains(cue.cluster) ? cue : nil
    }

    /// The position in the file of a position relative to the segment (RFC 9559 §16); nil outside of the segment.
    private func position(_ content: MediaBytes) -> Int64? {
        guard let value = content.unsignedInteger.flatMap(Int64.init(exactly:)) else { return nil }
        let (position, overflow) = segment.lowerBound.addingReportingOverflow(value)
        return !overflow && segment.contains(position) ? position : nil
    }
}
