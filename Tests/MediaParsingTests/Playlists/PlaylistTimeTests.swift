import CacheCore
import MediaParsing
import Testing

/// The times that play from the files on disk, and the combination of renditions.
struct PlaylistTimeTests {
    @Test("A time plays unless a file of it is missing")
    func spans() {
        #expect(TimeSpans.playable(in: 0..<20, missing: []) == [0..<20])
        #expect(TimeSpans.playable(in: 0..<20, missing: [8..<12, 4..<8]) == [0..<4, 12..<20])
        #expect(TimeSpans.playable(in: 0..<20, missing: [0..<20]) == [])
        #expect(TimeSpans.playable(in: 4..<20, missing: [0..<6, 18..<30]) == [6..<18])
        // Rounded durations leave gaps of less than a frame.
        #expect(TimeSpans.playable(in: 0..<20, missing: [0..<6, 6.001..<10]) == [10..<20])
    }

    @Test("Spans of alternatives are united, spans of tracks are intersected")
    func operations() {
        #expect(TimeSpans.union([0..<4, 8..<12], [4..<6, 20..<21]) == [0..<6, 8..<12, 20..<21])
        #expect(TimeSpans.intersection([0..<4, 8..<12], [2..<10]) == [2..<4, 8..<10])
        #expect(TimeSpans.intersection([], [2..<10]) == [])
    }

    private func rendition(
        _ kind: TrackKind, group: String = "", groups: [String] = [], playlist: String? = "a"
    ) -> MediaPlaylist.Rendition {
        var rendition = MediaPlaylist.Rendition(id: "", kind: kind)
        (rendition.group, rendition.groups, rendition.playlist) = (group, groups, playlist)
        return rendition
    }

    /// The spans of a playlist from those of its renditions.
    private func combined(
        _ format: MediaPlaylist.Format, _ renditions: [(MediaPlaylist.Rendition, [Range<Double>]?)]
    ) -> [Range<Double>]? {
        MediaPlaylist(format: format, renditions: renditions.map(\.0)).combined(
            renditions.map(\.1), either: TimeSpans.union, both: TimeSpans.intersection)
    }

    @Test("A variant stream of HLS plays with one rendition of each group")
    func variants() {
        let variant = rendition(.video, groups: ["sound", "text"])
        let sound = rendition(.audio, group: "sound")
        #expect(combined(.hlsMultivariant, [(variant, [0..<8]), (sound, []), (sound, [0..<4])]) == [0..<4])
        #expect(combined(.hlsMultivariant, [(variant, [0..<8]), (sound, nil)]) == nil)
        let other = (rendition(.video), [Range<Double>]([10..<12]))
        #expect(combined(.hlsMultivariant, [(variant, [0..<8]), other, (sound, [0..<4])]) == [0..<4, 10..<12])
        // Text is optional, and sound without a playlist is part of the variant stream.
        let text = rendition(.subtitles, group: "text")
        #expect(combined(.hlsMultivariant, [(variant, [0..<8]), (text, []), (sound, [0..<9])]) == [0..<8])
        let inside = rendition(.audio, group: "sound", playlist: nil)
        #expect(combined(.hlsMultivariant, [(variant, [0..<8]), (inside, []), (sound, [])]) == [0..<8])
        // A variant stream with sound only is used if there is no other.
        #expect(combined(.hlsMultivariant, [(rendition(.audio), [0..<3]), (rendition(.other), [])]) == [])
        #expect(combined(.hlsMultivariant, [(rendition(.audio), [0..<3])]) == [0..<3])
    }

    @Test("A manifest plays with a video and an audio representation")
    func representations() {
        let (video, audio) = (rendition(.video), rendition(.audio))
        #expect(combined(.dash, [(video, [0..<4]), (video, [4..<8]), (audio, [2..<20])]) == [2..<8])
        #expect(combined(.dash, [(video, [0..<4]), (audio, nil)]) == nil)
        #expect(combined(.dash, [(video, [0..<4])]) == [0..<4])
        #expect(combined(.dash, [(audio, [0..<4]), (rendition(.subtitles), [])]) == [0..<4])
        #expect(combined(.hlsMedia, [(rendition(.other), [0..<4])]) == [0..<4])
        #expect(combined(.dash, []) == nil)
    }
}
