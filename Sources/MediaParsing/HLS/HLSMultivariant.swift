import CacheCore

/// The variant streams and renditions of a multivariant playlist (RFC 8216 §4.3.4).
struct HLSMultivariant {
    private var renditions: [MediaPlaylist.Rendition] = []
    /// The `AUDIO` group of each variant stream, by its position in `renditions`.
    private var audioGroups: [Int: String] = [:]
    /// The `EXT-X-STREAM-INF` whose URI line follows.
    private var pending: (tag: HLSTag, rendition: MediaPlaylist.Rendition, audioGroup: String?)?
    private let limits: MediaLimits

    init(limits: MediaLimits) { self.limits = limits }

    /// Whether the next URI line belongs to a variant stream.
    var expectsURI: Bool { pending != nil }

    /// Applies `EXT-X-STREAM-INF`.
    mutating func streamInf(_ tag: HLSTag, variables: inout HLSVariables) throws(MediaError) {
        // A variant stream without its URI line is skipped.
        let unfinished = pending
        pending = nil
        let attributes = try HLSAttributes(tag, variables: &variables)
        var rendition = MediaPlaylist.Rendition(
            id: attributes["NAME"] ?? "", kind: Self.kind(of: attributes),
            bitsPerSecond: try attributes.number("BANDWIDTH"))
        _ = try attributes.number("AVERAGE-BANDWIDTH")
        rendition.codecs = MediaCodec.list(attributes["CODECS"] ?? "")
        let size = (attributes["RESOLUTION"] ?? "").utf8.split(separator: UInt8(ascii: "x"), maxSplits: 1)
        if size.count == 2, let width = FieldText.number(size[0]), let height = FieldText.number(size[1]) {
            (rendition.width, rendition.height) = (width, height)
        }
        rendition.groups = ["VIDEO", "AUDIO", "SUBTITLES"].compactMap { attributes[$0] }
        pending = (tag, rendition, attributes["AUDIO"])
        if let unfinished { throw unfinished.tag.malformed }
    }

    /// Adds the variant stream of the last `EXT-X-STREAM-INF`.
    mutating func add(uri: String) throws(MediaError) {
        guard let pending else { return }
        var rendition = pending.rendition
        rendition.playlist = uri
        audioGroups[renditions.count] = pending.audioGroup
        self.pending = nil
        try add(rendition)
    }

    /// Applies `EXT-X-MEDIA`. Closed captions and unknown types are ignored.
    mutating func media(_ tag: HLSTag, variables: inout HLSVariables) throws(MediaError) {
        let attributes = try HLSAttributes(tag, variables: &variables)
        let kind: TrackKind
        switch try attributes.required("TYPE") {
        case "VIDEO": kind = .video
        case "AUDIO": kind = .audio
        case "SUBTITLES": kind = .subtitles
        default: return
        }
        var rendition = MediaPlaylist.Rendition(id: try attributes.required("NAME"), kind: kind)
        rendition.group = try attributes.required("GROUP-ID")
        rendition.isDefault = attributes["DEFAULT"] == "YES"
        rendition.language = attributes["LANGUAGE"]
        // Without a URI the rendition is part of the variant stream.
        rendition.playlist = attributes["URI"]
        try add(rendition)
    }

    /// The renditions after the last line. A variant stream is of kind video only if all renditions of its `AUDIO`
    /// group have playlists of their own. A variant stream at the end without its URI line is omitted.
    func finished() -> [MediaPlaylist.Rendition] {
        var finished = renditions
        for (index, group) in audioGroups where finished[index].kind == .other {
            let members = renditions.filter { $0.group == group && $0.kind == .audio }
            if !members.isEmpty, members.allSatisfy({ $0.playlist != nil }) { finished[index].kind = .video }
        }
        return finished
    }

    private mutating func add(_ rendition: MediaPlaylist.Rendition) throws(MediaError) {
        guard renditions.count < limits.renditions else { throw .tooLarge("renditions") }
        renditions.append(rendition)
    }

    /// Audio or video if all codecs are of this kind; else other, which includes variant streams with both.
    private static func kind(of attributes: HLSAttributes) -> TrackKind {
        let codecs = attributes["CODECS"] ?? ""
        let kinds = Set(codecs.utf8.split(separator: UInt8(ascii: ",")).map { MediaCodec.kind(of: Substring($0)) })
        guard kinds.count == 1, let kind = kinds.first ?? nil else { return .other }
        switch kind {
        case .audio where attributes["RESOLUTION"] == nil && attributes["VIDEO"] == nil: return .audio
        case .video where attributes["AUDIO"] == nil: return .video
        default: return .other
        }
    }
}
