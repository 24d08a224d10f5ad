import CacheCore
import MediaParsing
import Testing

/// Selection of renditions and of the resources of a time span.
struct RenditionSelectionTests {
    typealias Resource = MediaPlaylist.Resource

    private func variants(_ rates: [Int64?]) -> MediaPlaylist {
        MediaPlaylist(
            format: .hlsMultivariant,
            renditions: rates.enumerated().map { rendition("\($0.offset)", rate: $0.element) })
    }

    @Test("One variant is selected by its bit rate")
    func byRate() {
        let playlist = variants([nil, 300, 100, 200, 200])
        #expect(playlist.selected(.first).map(\.id) == ["0"])
        #expect(playlist.selected(.lowest).map(\.id) == ["2"])
        #expect(playlist.selected(.maxBitsPerSecond(250)).map(\.id) == ["3"])
        #expect(playlist.selected(.maxBitsPerSecond(50)).map(\.id) == ["2"])
        #expect(playlist.selected(.maxBitsPerSecond(.max)).map(\.id) == ["1"])
        #expect(playlist.selected(.all).count == 5)
        #expect(variants([nil, nil]).selected(.maxBitsPerSecond(1)).map(\.id) == ["0"])
        #expect(variants([]).selected(.lowest).isEmpty)
    }

    @Test("The default of each group is added, else its first rendition")
    func groups() {
        var playlist = variants([100])
        playlist.renditions[0].groups = ["a", "s", "none", "a"]
        for (id, group, kind, isDefault) in [
            ("a1", "a", TrackKind.audio, false), ("a2", "a", .audio, true), ("s1", "s", .subtitles, false),
            ("s2", "s", .subtitles, false), ("b", "b", .audio, true),
        ] {
            var member = rendition(id, kind)
            member.group = group
            member.isDefault = isDefault
            playlist.renditions.append(member)
        }
        #expect(playlist.selected(.lowest).map(\.id) == ["0", "a2", "s1"])
    }

    @Test("Video or muxed variants are preferred to audio variants")
    func kinds() {
        let mixed = [rendition("a", .audio, rate: 1), rendition("m", .other, rate: 2), rendition("v", rate: 3)]
        #expect(MediaPlaylist(format: .hlsMultivariant, renditions: mixed).selected(.lowest).map(\.id) == ["m"])
        #expect(MediaPlaylist(format: .hlsMultivariant, renditions: [mixed[0]]).selected(.lowest).map(\.id) == ["a"])
    }

    @Test("DASH: one video and one audio rendition, but no image or subtitles")
    func dash() {
        let playlist = MediaPlaylist(
            format: .dash,
            renditions: [
                rendition("i", .other, rate: 1), rendition("v1", rate: 10), rendition("v2", rate: 5),
                rendition("a1", .audio, rate: 2), rendition("a2", .audio, rate: 3), rendition("s", .subtitles, rate: 1),
            ])
        #expect(playlist.selected(.lowest).map(\.id) == ["v2", "a1"])
        #expect(playlist.selected(.maxBitsPerSecond(9)).map(\.id) == ["v2", "a2"])
        #expect(playlist.selected(.first).map(\.id) == ["v1", "a1"])
    }

    @Test("DASH: renditions of other periods are added")
    func dashPeriods() {
        let playlist = MediaPlaylist(
            format: .dash,
            renditions: [
                rendition("long", rate: 5, times: [0..<4, 8..<12]), rendition("ad", rate: 9, times: [4..<8]),
                rendition("short", rate: 1, times: [0..<3.8]), rendition("high", rate: 10, times: [0..<4, 8..<12]),
            ])
        #expect(playlist.selected(.lowest).map(\.id) == ["short", "long", "ad"])
        #expect(playlist.selected(.first).map(\.id) == ["long", "ad"])
    }

    @Test("Resources: initialization sections and keys once, then the intersecting segments in order")
    func resources() {
        var subject = rendition("v", times: [0..<4, 4..<8, 8..<8, 8..<12, 12..<16])
        for index in subject.segments.indices {
            subject.segments[index].initialization = Resource(uri: index < 3 ? "i1" : "i2", range: 0..<10)
            subject.segments[index].key = Resource(uri: index < 2 ? "k1" : "k2")
        }
        subject.segments[4].resource = subject.segments[3].resource
        let playlist = MediaPlaylist(format: .hlsMedia, renditions: [subject])
        let uris = { (time: Range<Double>, keys: Bool) in
            playlist.resources(of: time, in: subject, keys: keys).map(\.uri)
        }
        #expect(uris(5..<9, true) == ["i1", "k1", "k2", "i2", "v-4.0", "v-8.0"])
        #expect(uris(5..<9, false) == ["i1", "i2", "v-4.0", "v-8.0"])
        #expect(uris(4..<8, false) == ["i1", "v-4.0"])
        #expect(uris(9..<99, false) == ["i2", "v-8.0"])
        #expect(uris(16..<20, true).isEmpty)
        #expect(uris(5..<5, true).isEmpty)
    }

    @Test("Resources of a single file and of a media playlist")
    func otherResources() {
        var file = MediaPlaylist.Rendition(id: "f", kind: .video)
        file.file = Resource(uri: "f.mp4")
        let playlist = MediaPlaylist(format: .dash, renditions: [file])
        #expect(playlist.resources(of: 0..<1, in: file, keys: true) == [Resource(uri: "f.mp4")])
        file.fileTime = 5..<9
        #expect(playlist.resources(of: 0..<1, in: file, keys: true).isEmpty)
        var reference = MediaPlaylist.Rendition(id: "r", kind: .video)
        reference.playlist = "r.m3u8"
        #expect(playlist.resources(of: 0..<1, in: reference, keys: true).isEmpty)
    }
}
