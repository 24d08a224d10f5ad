import CacheCore
import MediaParsing
import TestMedia
import Testing

@Suite struct MatroskaParserTests {
    typealias Builder = EBMLBuilder

    private func parse(_ bytes: [UInt8], _ limits: MediaLimits = MediaLimits()) async throws -> MediaIndex {
        try await MatroskaParser.index(of: RecordedSource(bytes).source, limits: limits)
    }

    /// The error of the parser as text; empty if it succeeds.
    private func failure(_ bytes: [UInt8], _ limits: MediaLimits = MediaLimits()) async -> String {
        do {
            _ = try await MatroskaParser.index(of: RecordedSource(bytes).source, limits: limits)
            return ""
        } catch {
            return "\(error)"
        }
    }

    private func file(_ content: [UInt8], size: [UInt8]? = nil) -> [UInt8] {
        Builder.header + Builder.element(0x1853_8067, content, size: size)
    }

    @Test("Clusters of unknown size are walked block by block")
    func walksUnknownSizes() async throws {
        let clusters = (0..<5).flatMap { Builder.cluster($0 * 1000, size: Builder.unknownSize) }
        let source = RecordedSource(file(Builder.tracks + clusters, size: Builder.unknownSize)).source
        var index = try await MatroskaParser.index(of: source)
        #expect(index.layout == .none)
        #expect(index.duration == nil)
        try await index.refine(for: 0..<60, source)
        #expect(index.duration == 4)
        #expect(index.tracks.map(\.pieces.count) == [5])
    }

    @Test("A file without cues is fetched up to the end of the span, in few requests")
    func fetchesOnlyTheSpan() async throws {
        let clusters = (0..<6000).flatMap { Builder.cluster($0 * 100, bytes: 2200) }
        let recorder = RecordedSource(file(Builder.tracks + clusters))
        var index = try await MatroskaParser.index(of: recorder.source)
        #expect(recorder.reads.count == 1)
        try await index.refine(for: 200..<210, recorder.source)
        #expect(recorder.fetches.count <= 4)
        let end = try #require(recorder.fetches.last?.upperBound)
        let bytes: ByteRange = 2200 * 2100..<2200 * 2600
        #expect(bytes.contains(end), "\(end)")
        #expect(index.ranges(of: 200..<210).contains(0..<2200 * 2100))
        #expect(!index.ranges(of: 200..<210).contains(0..<2200 * 2500))
    }

    @Test("The times of a file that does not begin at 0 count from its first cluster")
    func countsFromTheFirstCluster() async throws {
        let clusters = (30..<40).flatMap { Builder.cluster($0 * 1000, bytes: 300) }
        let step = Builder.cluster(30_000, bytes: 300).count
        let offset = Builder.tracks.count + Builder.cues([(30_000, 100), (35_000, 1000)]).count
        let cues = Builder.cues([(30_000, UInt64(offset)), (35_000, UInt64(offset + 5 * step))])
        let index = try await parse(file(Builder.tracks + cues + clusters))
        #expect(index.tracks.map(\.syncTimes) == [[0, 5]])
        #expect(index.tracks[0].pieces.first?.time.lowerBound == 0)
        #expect(index.tracks[0].pieces.allSatisfy { $0.time.lowerBound < 10 })
    }

    @Test("Times count from the earliest first block, which can precede the timestamp of its cluster")
    func countsFromTheFirstBlock() async throws {
        func entry(_ number: UInt8, _ kind: UInt8, _ delay: [UInt8] = []) -> [UInt8] {
            Builder.element(0xAE, Builder.element(0xD7, [number]) + Builder.element(0x83, [kind]) + delay)
        }
        func block(_ track: UInt8, _ offset: Int16, _ count: Int) -> [UInt8] {
            let time = UInt16(bitPattern: offset)
            let head = [0x80 | track, UInt8(time >> 8), UInt8(time & 0xFF), 0x80]
            return Builder.element(0xA3, head + [UInt8](repeating: 7, count: count))
        }
        let delay = Builder.element(0x56AA, Builder.number(7_000_000))
        // The video frame is longer than the first read of the file.
        for (delay, count, start) in [([], 100, 0.0), (delay, 100, -0.007), ([], 100_000, 0.0)] {
            let tracks = Builder.element(0x1654_AE6B, entry(1, 1) + entry(2, 2, delay))
            let blocks = block(1, 0, count) + block(2, -23, 50)
            let first = Builder.element(0x1F43_B675, Builder.element(0xE7, [23]) + blocks)
            let cues = Builder.cues([(23, 60), (2023, 200)])
            let recorder = RecordedSource(file(tracks + cues + first + Builder.cluster(2023)))
            let index = try await MatroskaParser.index(of: recorder.source)
            let times = try #require(index.tracks.first).syncTimes
            #expect(times.map { ($0 * 1e6).rounded() } == [0.023, 2.023].map { (($0 - start) * 1e6).rounded() })
            #expect(recorder.fetches.count == (count > 1000 ? 1 : 0))
        }
    }

    @Test("Cached bytes up to the beginning of a cluster do not change its time")
    func exploresUpToACluster() async throws {
        let clusters = (0..<6).map { Builder.cluster($0 * 1000, bytes: 300) }
        let bytes = file(Builder.tracks + clusters.joined())
        let source = RecordedSource(bytes).source
        var index = try await MatroskaParser.index(of: source)
        try await index.refine(for: 0..<60, source)
        let pieces = index.tracks[0].pieces
        #expect(pieces.count == 6)
        try await index.explore(ByteRangeSet([0..<pieces[3].bytes.lowerBound]), source)
        #expect(index.tracks[0].pieces == pieces)
    }

    @Test("A file with damaged bytes has no known end, and one with a single time no duration")
    func damaged() async throws {
        let damage = [UInt8](repeating: 0, count: 500)
        let clusters = Builder.cluster(0) + Builder.cluster(1000) + damage + Builder.cluster(9000)
        let source = RecordedSource(file(Builder.tracks + clusters)).source
        var index = try await MatroskaParser.index(of: source)
        try await index.refine(for: 0..<60, source)
        #expect(index.duration == nil)
        #expect(index.tracks[0].pieces.last?.time.upperBound == .infinity)
        let single = RecordedSource(file(Builder.tracks + Builder.cluster(0))).source
        index = try await MatroskaParser.index(of: single)
        try await index.refine(for: 0..<60, single)
        #expect(index.duration == nil)
    }

    @Test("Cues behind the end of a truncated file are ignored")
    func ignoresCuesBehindTheEnd() async throws {
        let cues = Builder.cues([(0, 200), (2000, 1 << 40), (4000, UInt64.max)])
        let clusters = Builder.cluster(0, bytes: 300)
        let index = try await parse(file(Builder.tracks + cues + clusters))
        #expect(index.layout == .headIndex)
        #expect(index.tracks.map(\.syncTimes) == [[0]])
    }

    @Test("Adjacent clusters are merged beyond the limit of pieces")
    func mergesPieces() async throws {
        let clusters = (0..<40).flatMap { Builder.cluster($0 * 1000) }
        let bytes = file(Builder.tracks + clusters)
        var limits = MediaLimits()
        limits.pieces = 7
        let source = RecordedSource(bytes).source
        var index = try await MatroskaParser.index(of: source, limits: limits)
        try await index.refine(for: 0..<60, source)
        #expect((1...7).contains(index.tracks[0].pieces.count))
        #expect(index.tracks[0].pieces.last?.bytes.upperBound == Int64(bytes.count))
    }

    @Test("An index beyond the limit is rejected")
    func rejectsLargeIndex() async {
        var limits = MediaLimits()
        limits.indexBytes = 70_000
        let cues = Builder.element(0x1C53_BB6B, [UInt8](repeating: 0xEC, count: 100_000))
        #expect(await failure(file(Builder.tracks + cues + Builder.cluster(0)), limits).hasPrefix("tooLarge"))
    }

    @Test("Contradictions are rejected with element and offset")
    func rejectsContradictions() async {
        #expect(await failure([]).hasPrefix("unsupported"))
        #expect(await failure(Array("not a Matroska file".utf8)).hasPrefix("unsupported"))
        let other = Builder.element(0x1A45_DFA3, Builder.element(0x4282, Array("other".utf8)))
        #expect(await failure(other + [0]).contains("document type"))
        #expect(await failure(file(Builder.cluster(0))).contains("Segment without Tracks"))
        #expect(await failure(file(Builder.tracks)).contains("Segment without a Cluster"))
        let badTracks = Builder.element(0x1654_AE6B, [0xAE, 0x88, 0xD7])
        #expect(await failure(file(badTracks)).contains("Tracks: the element 0xAE exceeds its parent."))
        let unknown = Builder.element(0x1549_A966, [], size: Builder.unknownSize)
        #expect(await failure(file(unknown)).contains("Info: unknown size"))
        let zeroScale = Builder.element(0x1549_A966, Builder.element(0x2A_D7B1, [0]))
        #expect(await failure(file(zeroScale)).contains("TimestampScale"))
        #expect(await failure(file([0x00, 0x00, 0x00])).contains("EBML element ID"))
        let long = Builder.element(0x1654_AE6B, [1, 2, 3], size: [0x01, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
        #expect(await failure(file(long)).contains("Tracks: the element exceeds the segment or the file."))
    }

    @Test("A failed read is reported as it is")
    func reportsFailedReads() async throws {
        let bytes = try StreamSamples.shared.bytes(.mkv)
        let whole = RecordedSource(bytes).source
        let source = MediaSource(length: whole.length) { range async throws(MediaError) -> [UInt8] in
            guard range.lowerBound < 1000 else { throw .unreadable(CacheError(.storageFull, "No space.")) }
            return try await whole.read(range)
        }
        do {
            _ = try await MatroskaParser.index(of: source)
            Issue.record("The parser ignored a failed read.")
        } catch .unreadable(let error) {
            #expect(error.message == "No space.")
        }
    }
}
