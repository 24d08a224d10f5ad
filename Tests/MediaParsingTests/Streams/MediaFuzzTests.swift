import CacheCore
import MediaParsing
import TestChance
import TestMedia
import Testing

@Suite(.enabled(if: FFmpeg.isAvailable)) struct MediaFuzzTests {
    private static let seed: UInt64 = 20_261_126

    @Test("2,000 mutations cause no trap, no unbounded reads and no inconsistent index")
    func survivesMutations() async throws {
        let seeds = try Self.seeds()
        var generator = SeededRandom(seed: Self.seed)
        var parsed = 0
        for round in 0..<2_000 {
            let (kind, seed) = seeds[round % seeds.count]
            let bytes = Self.mutate(seed, &generator)
            // Now and then the file is said to be much longer; the missing bytes are zeros.
            let length = Int64.random(in: 0..<64, using: &generator) == 0 ? 1 << 62 : Int64(bytes.count)
            let source = RecordedSource(bytes, length: length)
            do {
                var index = try await Self.parse(kind, source.source)
                parsed += 1
                try await index.refine(for: 0..<2, source.source)
                try await index.refine(for: 30..<40, source.source)
                try await index.explore(ByteRangeSet([0..<min(length, 3000)]), source.source)
                let count = index.tracks.reduce(0) { $0 + $1.pieces.count }
                let inconsistency = index.inconsistency(length: length)
                if inconsistency != nil || count > max(100, index.tracks.count) {
                    Issue.record("seed \(Self.seed), round \(round): \(count) pieces, \(inconsistency ?? "consistent")")
                }
            } catch {}  // each error is a valid result
            let reads = source.reads
            if source.isReadOutside || reads.count > 2100 || reads.byteCount > 4 << 20 {
                Issue.record("seed \(Self.seed), round \(round): \(reads.count) reads of \(reads.byteCount) bytes")
            }
        }
        #expect(parsed > 300)
    }

    private static func seeds() throws -> [(kind: MediaFormat, bytes: [UInt8])] {
        let samples = StreamSamples.shared
        let tail = EBMLBuilder.cues([(0, 100), (1000, 300), (9000, 500)])
        let clusters = (0..<6).flatMap { EBMLBuilder.cluster($0 * 1000) }
        let live = (0..<6).flatMap { EBMLBuilder.cluster($0 * 1000, size: EBMLBuilder.unknownSize) }
        let mkv = EBMLBuilder.header + EBMLBuilder.element(0x1853_8067, EBMLBuilder.tracks + tail + clusters)
        let unknown =
            EBMLBuilder.header
            + EBMLBuilder.element(0x1853_8067, EBMLBuilder.tracks + live, size: EBMLBuilder.unknownSize)
        return [
            (.matroska, mkv), (.matroska, unknown),
            (.matroska, Array(try samples.bytes(.mkvTiny))),
            (.matroska, Array(try samples.bytes(.mkvFront).prefix(4000))),
            (.mp3, Array(try samples.bytes(.mp3VBR).prefix(4000))),
            (.mp3, Array(try samples.bytes(.mp3Plain).prefix(4000))),
            (.mp3, Array(try samples.bytes(.mp3VBRPlain).prefix(4000))),
            (.mpegTS, Array(try samples.bytes(.ts).prefix(188 * 30))),
            (.mpegTS, Array(try samples.bytes(.m2ts).prefix(192 * 30))),
        ]
    }

    /// Changes up to 8 places; half of them are in the first 600 bytes.
    private static func mutate(_ seed: [UInt8], _ generator: inout SeededRandom) -> [UInt8] {
        var bytes = seed
        let values: [UInt8] = [0, 1, 0x7F, 0x80, 0xFF, 0x47, 0xE7, 0xA3]
        for _ in 0..<Int.random(in: 1...8, using: &generator) where !bytes.isEmpty {
            let bound = Bool.random(using: &generator) ? min(600, bytes.count) : bytes.count
            let place = Int.random(in: 0..<bound, using: &generator)
            switch Int.random(in: 0..<16, using: &generator) {
            case 0: bytes.removeLast(bytes.count - place)
            case 1: bytes.insert(contentsOf: bytes[place..<min(bytes.count, place + 24)], at: place)
            case 2: bytes.removeSubrange(place..<min(bytes.count, place + 5))
            case 3..<6: for index in place..<min(bytes.count, place + 8) { bytes[index] = 0xFF }
            case 6..<10: bytes[place] = values[Int.random(in: 0..<values.count, using: &generator)]
            case 10..<13: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
            default: bytes[place] = UInt8.random(in: 0...255, using: &generator)
            }
        }
        return bytes
    }

    private static func parse(_ kind: MediaFormat, _ source: MediaSource) async throws(MediaError) -> MediaIndex {
        var limits = MediaLimits()
        limits.indexBytes = 4 << 20
        limits.pieces = 100
        return switch kind {
        case .matroska: try await MatroskaParser.index(of: source, limits: limits)
        case .mp3: try await MP3Parser.index(of: source, limits: limits)
        default: try await TransportStreamParser.index(of: source, limits: limits)
        }
    }
}
