import CacheCore
import MediaParsing
import TestMedia
import Testing

/// Languages, resolution, chapters and key frames of containers.
struct MediaDescriptionTests {
    private typealias B = BoxBuilder

    private func movie(_ change: (inout MovieBuilder) -> Void) async throws -> MediaIndex {
        var movie = MovieBuilder()
        change(&movie)
        return try await MP4Parser.index(of: RecordedSource(movie.file()).source)
    }

    /// A box with chapters at these seconds.
    private func chapters(_ list: [(Int, String)], count: Int? = nil) -> [UInt8] {
        let rows = list.flatMap { B.u64($0.0 * 10_000_000) + B.u8($0.1.utf8.count) + Array($0.1.utf8) }
        return B.box("udta", B.full("chpl", version: 1, B.u32(0), B.u8(count ?? list.count), rows))
    }

    @Test("An MP4 file states languages, resolution, chapters and key frames")
    func mp4() async throws {
        let index = try await movie {
            // "deu": four, five and twenty-one in five bits each.
            $0.language = 4 << 10 | 5 << 5 | 21
            $0.picture = (1280, 720)
            $0.movieExtras = chapters([(5, "Zwei"), (0, "Eins")])
        }
        let track = try #require(index.tracks.first)
        #expect(track.description == MediaIndex.Description(language: "deu", width: 1280, height: 720))
        #expect(index.chapters == [.init(start: 0, title: "Eins"), .init(start: 5, title: "Zwei")])
        #expect(track.keyFrameCount == 2 && track.keyFrameInterval == 5)
    }

    @Test("An MP4 file without them has an index")
    func bareMP4() async throws {
        let und = 21 << 10 | 14 << 5 | 4
        let index = try await movie { ($0.language, $0.stss) = (und, []) }
        let track = try #require(index.tracks.first)
        #expect(track.description == MediaIndex.Description() && index.chapters.isEmpty)
        #expect(track.keyFrameCount == nil && track.keyFrameInterval == nil)
        // More chapters than bytes, and a text of QuickTime.
        #expect(try await movie { $0.movieExtras = chapters([(0, "a")], count: 9) }.chapters.isEmpty)
        #expect(try await movie { $0.movieExtras = B.box("udta", B.u32(7, 1)) }.tracks.count == 1)
    }

    @Test("A Matroska file states languages, resolution and chapters")
    func matroska() async throws {
        typealias E = EBMLBuilder
        func text(_ id: UInt32, _ text: String) -> [UInt8] { E.element(id, Array(text.utf8)) }
        let video = E.element(0xE0, E.element(0xB0, E.number(640)) + E.element(0xBA, E.number(360)))
        let track = E.element(0xD7, [1]) + E.element(0x83, [1]) + text(0x86, "V_VP9")
        let languages = text(0x22_B59C, "ger") + text(0x22_B59D, "de-AT")
        let tracks = E.element(0x1654_AE6B, E.element(0xAE, track + languages + video))
        func chapter(_ seconds: UInt64, _ title: String) -> [UInt8] {
            E.element(
                0xB6, E.element(0x91, E.number(seconds * 1_000_000_000)) + E.element(0x80, text(0x85, title)))
        }
        let chapters = E.element(0x1043_A770, E.element(0x45B9, chapter(9, "Two") + chapter(0, "One")))
        let body = tracks + chapters + (0..<20).flatMap { E.cluster($0 * 1000) }
        let file = E.header + E.element(0x1853_8067, body)
        let index = try await MatroskaParser.index(of: RecordedSource(file).source)
        #expect(index.tracks.map(\.description) == [.init(language: "de-AT", width: 640, height: 360)])
        #expect(index.chapters == [.init(start: 0, title: "One"), .init(start: 9, title: "Two")])

        let broken = E.element(0x1043_A770, E.element(0x45B9, [0xB6, 0x90]))
        let other = E.header + E.element(0x1853_8067, tracks + broken + E.cluster(0))
        #expect(try await MatroskaParser.index(of: RecordedSource(other).source).chapters.isEmpty)
    }
}
