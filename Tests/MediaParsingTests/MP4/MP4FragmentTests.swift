import TestMedia
import Testing
import CacheCore
@testable import MediaParsing

@Suite("MP4 fragments that are written by hand")
struct MP4FragmentTests {
    typealias B = BoxBuilder

    /// A movie box for fragments of track 1 with 1,000 units per second.
    static let head: [UInt8] = {
        var movie = MovieBuilder()
        movie.duration = 0
        movie.stts = B.full("stts", B.u32(0))
        movie.stss = []
        movie.stsc = B.full("stsc", B.u32(0))
        movie.stsz = B.full("stsz", B.u32(0, 0))
        movie.chunkOffsets = []
        movie.movieExtras = B.box("mvex", B.full("trex", B.u32(1, 1, 1000, 50, 0x1_0000)))
        return MovieBuilder.ftyp + movie.moov(mediaStart: 0)
    }()

    /// A fragment of two samples of one second, the first of them a sync sample.
    static func fragment(_ time: Int, trun: [UInt8]? = nil) -> [UInt8] {
        let run = trun ?? B.full("trun", flags: 0x5, B.u32(2, 100, 0))
        let traf = B.box("traf", B.full("tfhd", B.u32(1)), B.full("tfdt", version: 1, B.u64(time)), run)
        return B.box("moof", B.full("mfhd", B.u32(1)), traf) + B.box("mdat", [UInt8](repeating: 0, count: 100))
    }

    static func sidx(_ references: [(size: Int, duration: Int)], timeScale: Int = 1000, offset: Int = 0) -> [UInt8] {
        let rows = references.flatMap { B.u32($0.size, $0.duration, 0x9000_0000) }
        return B.full("sidx", B.u32(1, timeScale, 0, offset), B.u16(0, references.count), rows)
    }

    @Test("Fragments without an index are found one by one")
    func walk() async throws {
        let fragments = (0..<5).map { Self.fragment($0 * 2000) }
        let source = RecordedSource(Self.head + fragments.flatMap { $0 })
        let index = try await MP4Parser.index(of: source.source)
        #expect(index.layout == .fragmented && index.duration == 10)
        let track = try #require(index.tracks.first)
        let times: [Range<Double>] = (0..<5).map { (number: Int) in Double(2 * number)..<Double(2 * number + 2) }
        #expect(track.pieces.map(\.time) == times)
        #expect(track.pieces.map(\.bytes.length) == fragments.map { Int64($0.count) })
        #expect(track.syncTimes == [0, 2, 4, 6, 8])
        #expect(source.reads == [0..<Int64(source.bytes.count)])
    }

    @Test("A segment index gives the pieces, also if it refers to another index")
    func segmentIndex() async throws {
        let fragments = (0..<4).map { Self.fragment($0 * 2000) }
        let size = fragments[0].count
        let nested = Self.sidx([(size, 2000), (size, 2000)])
        var second = Self.sidx([(size, 2000), (size, 2000)])
        second.replaceSubrange(20..<24, with: B.u32(4000))
        let references = [(nested.count + 2 * size, 4000), (second.count + 2 * size, 4000)]
            .map { (size: $0.0 | 1 << 31, duration: $0.1) }
        let bytes = MP4ParserTests.join(
            Self.head, Self.sidx(references), nested, fragments[0], fragments[1], second, fragments[2], fragments[3])
        let index = try await MP4ParserTests.index(bytes)
        let track = try #require(index.tracks.first)
        let times: [Range<Double>] = (0..<4).map { (number: Int) in Double(2 * number)..<Double(2 * number + 2) }
        #expect(track.pieces.map(\.time) == times)
        #expect(track.syncTimes == [0, 2, 4, 6])
        // The segment indexes with the first header, the other segment index, and the header of the second fragment.
        #expect(index.indexRanges.count == 3, "\(index.indexRanges)")
        let header = Self.head.count + Self.sidx(references).count + nested.count + size
        #expect(index.indexRanges.contains { $0.lowerBound == Int64(header) })
    }

    @Test("The headers of all fragments are part of the index, also if a random access table names them")
    func fragmentHeaders() async throws {
        let fragments = (0..<50).map { Self.fragment($0 * 2000) + B.box("free", [UInt8](repeating: 0, count: 90_000)) }
        let size = fragments[0].count
        let rows = (0..<50).flatMap { (number: Int) -> [UInt8] in
            B.u32(number * 2000, Self.head.count + number * size) + B.u8(1, 1, 1)
        }
        let tfra = B.full("tfra", B.u32(1, 0, 50), rows)
        let mfra = B.box("mfra", tfra, B.full("mfro", B.u32(tfra.count + 24)))
        let source = RecordedSource(Self.head + fragments.flatMap { $0 } + mfra)
        let index = try await MP4Parser.index(of: source.source)
        #expect(index.tracks.first?.pieces.count == 50)
        #expect(index.tracks.first?.pieces.last?.time == 98..<100)
        let ranges = ByteRangeSet(index.indexRanges)
        for number in 0..<50 {
            let offset = Int64(Self.head.count + number * size)
            #expect(ranges.contains(offset..<offset + 100))
        }
        // One read for each header, and those of the head and of the box behind the last fragment.
        #expect(source.reads.count <= 103, "\(source.reads.count)")
        #expect(source.reads.byteCount < 103 * 64 << 10)
    }

    @Test("Short fragments are fetched together, and more of them than the limit of requests are indexed")
    func shortFragments() async throws {
        var limits = MediaLimits()
        limits.fragments = 3
        let fragments = (0..<2000).flatMap {
            Self.fragment($0 * 2000) + B.box("free", [UInt8](repeating: 0, count: 3000))
        }
        let source = RecordedSource(Self.head + fragments)
        let index = try await MP4Parser.index(of: source.source, limits: limits)
        #expect(index.tracks.first?.pieces.count == 2000)
        #expect((1...3).contains(source.fetches.count), "\(source.fetches)")
        #expect(!source.isReadOutside)
        let unfetched = source.reads.filter { read in !source.fetches.contains { read.clamped(to: $0) == read } }
        #expect(unfetched.count <= 6, "\(unfetched)")
    }

    @Test("A truncated fragment is not playable, those before it are")
    func truncated() async throws {
        let bytes = Self.head + Self.fragment(0) + Self.fragment(2000).dropLast(1)
        let index = try await MP4Parser.index(of: RecordedSource(bytes).source)
        #expect(index.tracks[0].pieces.map(\.time) == [0..<2])
    }

    @Test("Contradictions in fragments name the box")
    func malformed() async {
        func failure(_ bytes: [UInt8]) async -> String { await MP4ParserTests.failure(Self.head + bytes) }
        let fragment = Self.fragment(0)
        #expect(await failure(Self.sidx([(100, 1)], timeScale: 0) + fragment) == "malformed sidx")
        #expect(await failure(Self.sidx([(0, 1)]) + fragment) == "malformed sidx")
        #expect(await failure(Self.sidx([(10_000, 1)]) + fragment) == "malformed sidx")
        #expect(await failure(Self.sidx([(100, 1)], offset: 10_000) + fragment) == "malformed sidx")
        #expect(await failure(Self.sidx([(100 | 1 << 31, 1)]) + fragment) == "malformed sidx")
        #expect(await failure(B.full("sidx", B.u32(1, 1, 0, 0), B.u16(0, 9)) + fragment) == "malformed sidx")
        #expect(await failure(Self.fragment(0, trun: B.full("trun", flags: 0x100, B.u32(9)))) == "malformed trun")
        #expect(
            await failure(Self.fragment(1 << 59, trun: B.full("trun", B.u32(0xFFFF_FFFF)))) == "none")
        #expect(
            await failure(Self.fragment((1 << 60) - 1, trun: B.full("trun", B.u32(0xFFFF_FFFF)))) == "malformed trun")
        #expect(await failure(Self.fragment(1 << 61)) == "malformed tfdt")
        #expect(await failure(B.box("moof", B.box("traf", B.full("trun", B.u32(1))))) == "malformed traf")
        #expect(await failure(B.box("moof", B.box("traf", B.full("tfhd", flags: 0x8, B.u32(1))))) == "malformed tfhd")
        #expect(await failure(fragment.dropLast(1) + []) == "malformed mdat")
    }

    @Test("The number of fragments, of segment indexes and their depth are limited")
    func limits() async {
        var limits = MediaLimits()
        limits.fragments = 3
        let fragments = (0..<70).flatMap {
            Self.fragment($0 * 2000) + B.box("free", [UInt8](repeating: 0, count: 140_000))
        }
        #expect(await MP4ParserTests.failure(Self.head + fragments, limits) == "tooLarge")
        let indexes = (0..<4).flatMap { _ in Self.sidx([(8, 1)]) }
        #expect(await MP4ParserTests.failure(Self.head + indexes + Self.fragment(0), limits) == "tooLarge")
        var nested = Self.fragment(0)
        for _ in 0..<12 { nested = Self.sidx([(nested.count | 1 << 31, 1)]) + nested }
        #expect(await MP4ParserTests.failure(Self.head + nested) == "tooLarge")
    }
}
