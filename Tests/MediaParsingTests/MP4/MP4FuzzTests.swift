import TestChance
import TestMedia
import Testing
import CacheCore
@testable import MediaParsing

@Suite("Mutated MP4 files", .enabled(if: FFmpeg.isAvailable))
struct MP4FuzzTests {
    typealias B = BoxBuilder

    /// Files of less than 4 KiB of index; the media data is short.
    static let seeds: [[UInt8]] = {
        var plain = MovieBuilder()
        plain.ctts = B.full("ctts", version: 1, B.u32(2, 5, 500, 5, -250))
        plain.edits = MovieBuilder.elst([(500, -1), (3000, 2000), (2000, 0)])
        var wide = MovieBuilder()
        wide.wide = true
        wide.tracks = 3
        wide.stss = []
        wide.stsz = B.full("stz2", B.u32(4, 10), B.u8(0x12, 0x34, 0x56, 0x78, 0x9A))
        let fragments = (0..<4).map { MP4FragmentTests.fragment($0 * 2000) }
        let size = fragments[0].count
        let all = fragments.flatMap { $0 }
        let sidx = MP4FragmentTests.sidx(fragments.map { ($0.count, 2000) })
        let start = MP4FragmentTests.head.count
        let rows: [UInt8] = (0..<4).flatMap { (row: Int) in B.u32(row * 2000, start + row * size) + B.u8(1, 1, 1) }
        let tfra = B.full("tfra", B.u32(1, 0, 4), rows)
        let mfra = B.box("mfra", tfra, B.full("mfro", B.u32(tfra.count + 24)))
        let tail = MovieBuilder.ftyp + B.box("mdat", [UInt8](repeating: 0, count: 1000)) + plain.moov(mediaStart: 28)
        let nested = MP4FragmentTests.sidx([(sidx.count + all.count | 1 << 31, 8000)])
        return [
            plain.file(), wide.file(), tail, MP4FragmentTests.head + all, MP4FragmentTests.head + sidx + all,
            MP4FragmentTests.head + all + mfra, MP4FragmentTests.head + nested + sidx + all,
        ]
    }()

    @Test("2,000 mutations neither trap nor cause many reads")
    func mutations() async throws {
        let seed: UInt64 = 0x4C61_7264_6572
        var generator = SeededRandom(seed: seed)
        var limits = MediaLimits()
        limits.pieces = 64
        limits.fragments = 16
        var successes = 0
        for round in 0..<2_000 {
            let bytes = Self.mutate(Self.seeds[round % Self.seeds.count], using: &generator)
            let source = RecordedSource(bytes)
            do throws(MediaError) {
                let index = try await MP4Parser.index(of: source.source, limits: limits)
                successes += 1
                #expect(index.tracks.reduce(0) { $0 + $1.pieces.count } <= 2 * limits.pieces + 2 * index.tracks.count)
                let ranges = index.cutSpanRanges(of: 1..<3, length: Int64(bytes.count))
                #expect(ranges.runs.last.map { $0.upperBound <= bytes.count } ?? true, "round \(round), seed \(seed)")
                _ = index.playableSpans(cached: ranges)
            } catch {}
            let reads = source.reads
            #expect(reads.count <= limits.fragments + 64, "round \(round), seed \(seed)")
            #expect(
                reads.allSatisfy { 0 <= $0.lowerBound && $0.upperBound <= bytes.count }, "round \(round), seed \(seed)")
            _ = MP4Parser.mediaDataBeforeIndex(head: Array(bytes.prefix(128)))
        }
        #expect(successes > 300)
    }

    /// Changes one to eight places: bits, bytes, 32-bit integers with extreme values, copies, insertions and cuts.
    private static func mutate(_ seed: [UInt8], using generator: inout SeededRandom) -> [UInt8] {
        var bytes = seed
        let extremes = [0, 1, 2, 7, 8, 15, 16, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0xFFFF_FFFE, bytes.count]
        for _ in 0..<Int.random(in: 1...8, using: &generator) {
            guard bytes.count > 16 else { break }
            let place = Int.random(in: 0..<bytes.count - 8, using: &generator)
            switch Int.random(in: 0..<7, using: &generator) {
            case 0: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
            case 1: bytes[place] = UInt8.random(in: 0...255, using: &generator)
            case 2, 3:
                let value = extremes.randomElement(using: &generator) ?? 0
                bytes.replaceSubrange(place..<place + 4, with: B.u32(value))
            case 4:
                bytes.replaceSubrange(place..<place + 8, with: B.u64(extremes.randomElement(using: &generator) ?? 0))
            case 5:
                let source = Int.random(in: 0..<bytes.count - 8, using: &generator)
                bytes.insert(contentsOf: Array(bytes[source..<source + 8]), at: place)
            default:
                guard Int.random(in: 0..<4, using: &generator) == 0 else { continue }
                bytes.removeSubrange(place..<place + Int.random(in: 1...8, using: &generator))
            }
        }
        return bytes
    }
}
