import TestMedia
import Testing
import CacheCore
@testable import MediaParsing

@Suite("Cover art")
struct CoverTests {
    typealias B = BoxBuilder

    private static func pictures(_ types: Int...) -> [UInt8] {
        let data = types.flatMap { B.box("data", B.u32($0, 0), [0xFF, 0xD8]) }
        return B.box("ilst", B.box("covr", data))
    }

    @Test("The pictures of an MP4 are tracks without data", arguments: [true, false])
    func mp4(hasVersion: Bool) async throws {
        var movie = MovieBuilder()
        let content = Self.pictures(13, 14)
        movie.movieExtras = B.box("udta", hasVersion ? B.full("meta", content) : B.box("meta", content))
        let index = try await MP4ParserTests.index(movie.file())
        #expect(index.tracks.map(\.kind) == [.video, .other, .other])
        #expect(index.tracks.dropFirst().map(\.codec) == ["jpeg", "png"])
        #expect(index.playableSpans(cached: ByteRangeSet([0..<Int64(movie.file().count)])).map(\.lowerBound) == [0])
    }

    @Test("A damaged list of pictures does not prevent the index")
    func damaged() async throws {
        var movie = MovieBuilder()
        movie.movieExtras = B.box("udta", B.full("meta", B.box("ilst", B.u32(900) + Array("covr".utf8))))
        #expect(try await MP4ParserTests.index(movie.file()).tracks.count == 1)
    }

    @Test("The pictures of an ID3 tag are found behind other frames", arguments: [2, 3, 4])
    func id3(version: Int) {
        func frame(_ id: String, _ content: [UInt8]) -> [UInt8] {
            Array(id.utf8) + (version == 2 ? B.integer(content.count, 3) : B.u32(content.count) + [0, 0]) + content
        }
        let picture = version == 2 ? [0] + Array("JPG".utf8) : [0] + Array("image/png".utf8) + [0]
        let frames =
            frame(version == 2 ? "TT2" : "TIT2", [0, 65]) + frame(version == 2 ? "PIC" : "APIC", picture + [3, 0, 9])
        let tag = Array("ID3".utf8) + [UInt8(version), 0, 0, 0, 0, 0, UInt8(frames.count + 10)] + frames
        let found = ID3Tag.coverCodecs(in: MediaBytes(offset: 0, bytes: (tag + [UInt8](repeating: 0, count: 10))[...]))
        #expect(found == [version == 2 ? "jpeg" : "png"])
    }
}
