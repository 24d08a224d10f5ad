import TestMedia
import Testing
import CacheCore
@testable import MediaParsing

@Suite("MP4 boxes that are written by hand")
struct MP4ParserTests {
    typealias B = BoxBuilder

    static func index(_ bytes: [UInt8], _ limits: MediaLimits = MediaLimits()) async throws(MediaError) -> MediaIndex {
        try await MP4Parser.index(of: RecordedSource(bytes).source, limits: limits)
    }

    /// The error as text: `malformed stsz`, `unsupported`, `tooLarge`, or `none`.
    static func failure(_ bytes: [UInt8], _ limits: MediaLimits = MediaLimits()) async -> String {
        do throws(MediaError) {
            _ = try await index(bytes, limits)
            return "none"
        } catch {
            switch error {
            case .unsupported: return "unsupported"
            case .malformed(let box, let offset):
                #expect(offset >= 0 && offset <= bytes.count)
                return "malformed \(box)"
            case .tooLarge: return "tooLarge"
            case .unreadable: return "unreadable"
            }
        }
    }

    static func join(_ parts: [UInt8]...) -> [UInt8] { parts.flatMap { $0 } }

    static func failure(_ change: (inout MovieBuilder) -> Void) async -> String {
        var movie = MovieBuilder()
        change(&movie)
        return await failure(movie.file())
    }

    static func track(_ change: (inout MovieBuilder) -> Void) async throws -> (MediaIndex.Track, mediaStart: Int64) {
        var movie = MovieBuilder()
        change(&movie)
        let bytes = movie.file()
        let index = try await index(bytes)
        return (try #require(index.tracks.first), Int64(bytes.count - movie.mediaLength))
    }

    @Test("A movie of ten samples has pieces of at least half a second and two sync times")
    func movie() async throws {
        let bytes = MovieBuilder().file()
        let index = try await Self.index(bytes)
        #expect(index.layout == .headIndex)
        #expect(index.duration == 10)
        #expect(index.indexRanges == [0..<Int64(bytes.count - 1000)])
        let track = try #require(index.tracks.first)
        #expect(track.codec == "avc1" && track.kind == .video && track.id == 1)
        #expect(track.syncTimes == [0, 5])
        let times = (0..<10).map { Double($0)..<Double($0 + 1) }
        #expect(track.pieces.map(\.time) == times)
        #expect(track.pieces.map(\.bytes.length) == Array(repeating: 100, count: 10))
    }

    @Test("64-bit offsets and sizes of 4, 8 and 16 bits are read")
    func variants() async throws {
        let (expected, _) = try await Self.track { _ in }
        let (wide, _) = try await Self.track { $0.wide = true }
        #expect(wide.pieces.map(\.bytes.length) == expected.pieces.map(\.bytes.length))
        let small = try await Self.track { $0.stsz = B.full("stz2", B.u32(4, 10), B.u8(0x12, 0x34, 0x56, 0x78, 0x9A)) }
        #expect(small.0.pieces.map(\.bytes.length) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
        let byte = try await Self.track { $0.stsz = B.full("stz2", B.u32(8, 10), B.u8(1, 2, 3, 4, 5, 6, 7, 8, 9, 190)) }
        #expect(byte.0.pieces.map(\.bytes.length) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 190])
        let word = try await Self.track {
            $0.mediaLength = 2000
            $0.stsz = B.full("stz2", B.u32(16, 10), B.u16(1, 2, 3, 4, 5, 6, 7, 8, 9, 1000))
        }
        #expect(word.0.pieces.last?.bytes.length == 1000)
    }

    @Test("Boxes with a 64-bit size, and a last box without a size, are followed")
    func boxSizes() async throws {
        let movie = MovieBuilder()
        let large = B.u32(1) + Array("mdat".utf8) + B.u64(1016) + [UInt8](repeating: 0, count: 1000)
        let head = MovieBuilder.ftyp + large
        let start = head.count - 1000
        let bytes = head + movie.moov(mediaStart: start)
        let index = try await Self.index(bytes)
        #expect(index.layout == .tailIndex)
        let ranges: [ByteRange] = [0..<Int64(start), Int64(head.count)..<Int64(bytes.count)]
        #expect(index.indexRanges == ranges)
        #expect(index.tracks.first?.pieces.first?.bytes == Int64(start)..<Int64(start + 100))
        #expect(MP4Parser.mediaDataBeforeIndex(head: Array(bytes.prefix(64))) == Int64(head.count))

        var endless = movie.moov(mediaStart: start)
        endless.replaceSubrange(0..<4, with: [0, 0, 0, 0])
        #expect(try await Self.index(head + endless).duration == 10)
    }

    @Test("The head of a file tells the end of mdat only if mdat precedes moov")
    func mediaDataBeforeIndex() {
        let mdat = B.u32(1 << 20) + Array("mdat".utf8)
        #expect(MP4Parser.mediaDataBeforeIndex(head: mdat) == 1 << 20)
        let later: Int64 = (1 << 20) + 28
        #expect(MP4Parser.mediaDataBeforeIndex(head: Self.join(MovieBuilder.ftyp, B.box("free"), mdat)) == later)
        #expect(MP4Parser.mediaDataBeforeIndex(head: MovieBuilder().file()) == nil)
        #expect(MP4Parser.mediaDataBeforeIndex(head: Self.join(B.u32(0), Array("mdat".utf8))) == nil)
        #expect(MP4Parser.mediaDataBeforeIndex(head: Self.join(B.u32(7), Array("mdat".utf8))) == nil)
        #expect(MP4Parser.mediaDataBeforeIndex(head: Self.join(B.u32(1), Array("mdat".utf8))) == nil)
        #expect(MP4Parser.mediaDataBeforeIndex(head: Self.join(B.u32(1), Array("mdat".utf8), B.u64(-1))) == nil)
        #expect(MP4Parser.mediaDataBeforeIndex(head: Array("\u{1A}Eß£ matroska".utf8)) == nil)
        #expect(MP4Parser.mediaDataBeforeIndex(head: [0, 0, 0]) == nil)
        #expect(MP4Parser.mediaDataBeforeIndex(head: []) == nil)
    }

    @Test("Edit lists shift, delay, cut and repeat the samples")
    func edits() async throws {
        let (shifted, _) = try await Self.track { $0.edits = MovieBuilder.elst([(8000, 2000)]) }
        #expect(shifted.pieces.first?.time.lowerBound == 0)
        #expect(shifted.pieces.last?.time == 7..<8)
        // The samples before the edit are decoded at its beginning.
        #expect(shifted.pieces.count == 10 && shifted.syncTimes == [0, 3])

        let (delayed, _) = try await Self.track { $0.edits = MovieBuilder.elst([(1500, -1), (10_000, 0)], version: 1) }
        #expect(delayed.pieces.first?.time == 1.5..<2.5 && delayed.syncTimes == [1.5, 6.5])

        let (repeated, _) = try await Self.track { $0.edits = MovieBuilder.elst([(2000, 5000), (2000, 0)]) }
        #expect(repeated.syncTimes == [0, 2])
        #expect(repeated.pieces.map(\.time) == [2..<3, 3..<4, 0..<1, 1..<2])
    }

    @Test("Composition offsets of both signs give presentation times")
    func compositionOffsets() async throws {
        let (track, _) = try await Self.track {
            $0.ctts = B.full("ctts", version: 1, B.u32(2, 5, 500, 5, -250))
        }
        #expect(track.syncTimes == [0.5, 4.75])
        #expect(track.pieces.last?.time == 8.75..<9.75)
    }

    @Test("More samples than the limit for pieces are merged")
    func mergedPieces() async throws {
        var limits = MediaLimits()
        limits.pieces = 4
        let index = try await Self.index(MovieBuilder().file(), limits)
        let pieces = try #require(index.tracks.first).pieces
        #expect(pieces.count <= 4)
        #expect(ByteRangeSet(pieces.map(\.bytes)).byteCount == 1000)
        #expect(pieces.first?.time.lowerBound == 0 && pieces.last?.time.upperBound == 10)
    }

    @Test("A huge number of equal samples needs neither time nor memory")
    func hugeCounts() async throws {
        let (track, _) = try await Self.track {
            $0.stsz = B.full("stsz", B.u32(1, 1000))
            $0.stsc = B.full("stsc", B.u32(1, 1, 200, 1))
            $0.stts = B.full("stts", B.u32(1, 0xFFFF_FFFF, 1))
        }
        #expect(track.pieces.reduce(0) { $0 + $1.bytes.length } == 1000)
        #expect(await Self.failure { $0.stsz = B.full("stsz", B.u32(1, 0xFFFF_FFFF)) } == "malformed stsc")
        #expect(
            await Self.failure {
                $0.stsz = B.full("stsz", B.u32(1, 0xFFFF_FFFF))
                $0.stsc = B.full("stsc", B.u32(1, 1, 0xFFFF_FFFF, 1))
            } == "malformed stco")
    }

    @Test("A truncated file is indexed as far as it goes")
    func truncated() async throws {
        let whole = MovieBuilder().file()
        let complete = try await MP4Parser.index(of: RecordedSource(whole).source)
        let index = try await MP4Parser.index(of: RecordedSource(Array(whole.dropLast(150))).source)
        let bytes = { (index: MediaIndex) in index.tracks[0].pieces.reduce(0) { $0 + $1.bytes.length } }
        #expect(bytes(complete) == 1000 && (700..<900).contains(bytes(index)), "\(bytes(index))")
        let (end, completeEnd) = (try #require(index.end), try #require(complete.end))
        #expect(end < completeEnd)
        #expect(index.duration == complete.duration)
        // Without a single sample there is nothing to play.
        #expect(await Self.failure(Array(whole.dropLast(950))) == "malformed stco")
    }

    @Test("Files of other formats are unsupported")
    func unsupported() async {
        #expect(await Self.failure(Array("GET / HTTP/1.1\r\n\r\n".utf8)) == "unsupported")
        #expect(await Self.failure([]) == "unsupported")
        #expect(await Self.failure([0, 0, 0, 8]) == "unsupported")
        #expect(await Self.failure(MovieBuilder.ftyp) == "unsupported")
        #expect(
            await Self.failure(Self.join(MovieBuilder.ftyp, B.u32(0), Array("mdat".utf8), [1, 2, 3])) == "unsupported")
        #expect(
            await Self.failure(Self.join(MovieBuilder.ftyp, B.box("moof"), MovieBuilder().moov(mediaStart: 0)))
                == "unsupported")
        #expect(await Self.failure { $0.movieExtras = B.box("cmov", B.u32(0)) } == "unsupported")
        #expect(await Self.failure { $0.movieExtras = B.box("rmra") } == "unsupported")
        #expect(await Self.failure { $0.tracks = 0 } == "unsupported")
        do throws(MediaError) {
            _ = try await Self.index(Array("GET / HTTP/1.1".utf8))
        } catch {
            guard case .unsupported(let text) = error else { return }
            #expect(text == "The file begins with \"GET / HT\", which is no box of an ISO base media file.")
        }
    }

    @Test("Contradictions name the box")
    func malformed() async {
        #expect(await Self.failure { $0.trackScale = 0 } == "malformed mdhd")
        #expect(await Self.failure { $0.movieScale = 0 } == "malformed mvhd")
        #expect(await Self.failure { $0.omitsMediaHeader = true } == "malformed mdhd")
        #expect(await Self.failure { $0.stts = [] } == "malformed stbl")
        #expect(await Self.failure { $0.stts = B.full("stts", B.u32(0)) } == "malformed stbl")
        #expect(await Self.failure { $0.stts = B.full("stts", B.u32(1000, 10, 1000)) } == "malformed stts")
        #expect(await Self.failure { $0.stts = B.full("stts", B.u32(0xFFFF_FFFF)) } == "malformed stts")
        #expect(await Self.failure { $0.ctts = B.full("ctts", B.u32(2, 1, 1)) } == "malformed ctts")
        #expect(await Self.failure { $0.stss = B.full("stss", B.u32(3, 1)) } == "malformed stss")
        #expect(await Self.failure { $0.stsc = B.full("stsc", B.u32(1, 2, 2, 1)) } == "malformed stsc")
        #expect(await Self.failure { $0.stsc = B.full("stsc", B.u32(2, 1, 2, 1, 1, 2, 1)) } == "malformed stsc")
        #expect(await Self.failure { $0.stsc = B.full("stsc", B.u32(0)) } == "malformed stsc")
        #expect(await Self.failure { $0.stsc = B.full("stsc", B.u32(1, 1, 1, 1)) } == "malformed stsc")
        #expect(await Self.failure { $0.stsc = B.full("stsc", B.u32(1, 1, 0, 1)) } == "malformed stsc")
        #expect(await Self.failure { $0.stsz = B.full("stsz", B.u32(0, 10, 1)) } == "malformed stsz")
        #expect(await Self.failure { $0.stsz = B.full("stz2", B.u32(5, 10)) } == "malformed stz2")
        #expect(await Self.failure { $0.stsz = B.full("stz2", B.u32(4, 10), B.u8(1)) } == "malformed stz2")
        #expect(await Self.failure { $0.stsz = B.full("stsz", B.u32(100)) } == "malformed stsz")
        #expect(await Self.failure { $0.chunkOffsets[0] = 5000 } == "malformed stco")
        #expect(await Self.failure { $0.chunkOffsets[4] = 5000 } == "malformed stco")
        #expect(await Self.failure { $0.chunkOffsets[4] = 900 } == "malformed stco")
        #expect(
            await Self.failure {
                $0.wide = true
                $0.chunkOffsets[0] = .max / 2
            } == "malformed co64")
        #expect(
            await Self.failure {
                $0.wide = true
                $0.chunkOffsets[0] = -10_000
            } == "malformed co64")
        #expect(await Self.failure { $0.edits = B.box("edts", B.full("elst", B.u32(9))) } == "malformed elst")
        #expect(await Self.failure { $0.extras = Self.join(B.u32(7), Array("free".utf8)) } == "malformed free")
        #expect(await Self.failure { $0.extras = Self.join(B.u32(9000), Array("free".utf8)) } == "malformed free")
        #expect(await Self.failure { $0.extras = Self.join(B.u32(1), Array("free".utf8)) } == "malformed stbl")
        #expect(await Self.failure { $0.movieExtras = B.box("mvex", B.full("trex")) } == "malformed trex")
        #expect(await Self.failure(Self.join(MovieBuilder.ftyp, B.u32(4), Array("moov".utf8))) == "malformed moov")
        #expect(await Self.failure(Self.join(MovieBuilder.ftyp, B.u32(4000), Array("mdat".utf8))) == "malformed mdat")
    }

    @Test("Limits for the index, the tracks and the edits are kept")
    func limits() async {
        var limits = MediaLimits()
        limits.indexBytes = 300
        #expect(await Self.failure(MovieBuilder().file(), limits) == "tooLarge")
        #expect(await Self.failure { $0.tracks = 129 } == "tooLarge")
        #expect(
            await Self.failure { $0.edits = MovieBuilder.elst(Array(repeating: (1, 0), count: 257)) } == "tooLarge")
        let boxes = (0..<300).flatMap { _ in B.box("free") }
        #expect(
            await Self.failure(Self.join(MovieBuilder.ftyp, boxes, MovieBuilder().moov(mediaStart: 0))) == "tooLarge")
    }

    @Test("A read that fails, and one that returns too little, are reported")
    func unreadable() async {
        let failing = MediaSource(length: 100) { _ throws(MediaError) in throw .unreadable(CacheError(.notFound, "x")) }
        let short = MediaSource(length: 100) { _ throws(MediaError) in [1, 2, 3] }
        for source in [failing, short] {
            do throws(MediaError) {
                _ = try await MP4Parser.index(of: source)
                Issue.record("The index was read.")
            } catch {
                guard case .unreadable = error else {
                    Issue.record("\(error)")
                    continue
                }
            }
        }
    }
}
