import CacheCore
@testable import MediaParsing
import TestChance
import Testing

@Suite("Ranges of a time span, and spans that are playable from cached bytes")
struct MediaIndexRangesTests {
    /// Video of 10 s with a sync sample each 2 s, and audio; each second has 100 bytes of video, then 10 of audio.
    static let index: MediaIndex = {
        var video = MediaIndex.Track(id: 1, kind: .video, codec: "avc1", syncTimes: [0, 2, 4, 6, 8])
        var audio = MediaIndex.Track(id: 2, kind: .audio, codec: "mp4a")
        for second in 0..<10 {
            let start = 1000 + Int64(second) * 110
            let time = Double(second)..<Double(second + 1)
            video.pieces.append(MediaIndex.Piece(time: time, bytes: start..<start + 100))
            audio.pieces.append(MediaIndex.Piece(time: time, bytes: start + 100..<start + 110))
        }
        return MediaIndex(
            container: .mp4, layout: .headIndex, duration: 10, tracks: [video, audio], indexRanges: [0..<1000],
            slack: 50)
    }()

    static func bytes(_ seconds: Range<Int>) -> ByteRange {
        1000 + Int64(seconds.lowerBound) * 110..<1000 + Int64(seconds.upperBound) * 110
    }

    @Test("A span begins with the last sync sample and has slack at its end")
    func span() {
        let first: [ByteRange] = [0..<1270]
        #expect(Self.index.cutSpanRanges(of: 0..<2).runs == first)
        // Sound begins 0.25 s before the sync sample at 4 s.
        let runs: [ByteRange] = [0..<1000, 1430..<1710]
        #expect(Self.index.cutSpanRanges(of: 5..<6).runs == runs)
        #expect(Self.index.cutSpanRanges(of: 5..<6, kinds: [.video]).contains(1440..<1540))
        #expect(!Self.index.cutSpanRanges(of: 5..<6, kinds: [.video]).contains(1540..<1541))
        #expect(Self.index.cutSpanRanges(of: 3..<3).runs == [0..<1000])
        #expect(Self.index.cutSpanRanges(of: 9..<20, length: 2100).runs.last?.upperBound == 2100)
        #expect(Self.index.cutSpanRanges(of: 20..<30, kinds: [.subtitles]).runs == [0..<1000])
    }

    @Test("ffmpeg seeks before the requested time in a Matroska file")
    func earlierKeyFrame() {
        var index = Self.index
        index.container = .matroska
        #expect(index.spanRanges(of: 4.1..<6, kinds: [.video]).contains(Self.bytes(2..<3).lowerBound..<1320))
        #expect(!index.spanRanges(of: 4.2..<6, kinds: [.video]).contains(Self.bytes(2..<3).lowerBound..<1320))
        #expect(!Self.index.spanRanges(of: 4.1..<6, kinds: [.video]).contains(Self.bytes(2..<3).lowerBound..<1320))
        #expect(index.spanRanges(of: 0..<1, kinds: [.video]).contains(Self.bytes(0..<1).lowerBound..<1100))
    }

    @Test("The beginning contains the first samples of a track that begins late")
    func lateTrack() {
        var index = Self.index
        index.slack = 0
        index.tracks[1].pieces.removeFirst(4)
        // ffmpeg reads until it has found the sound; in blocks of 32 KiB all bytes are in the first one.
        for track in index.tracks.indices {
            index.tracks[track].pieces = index.tracks[track].pieces.map { piece in
                .init(time: piece.time, bytes: piece.bytes.lowerBound << 10..<piece.bytes.upperBound << 10)
            }
        }
        let ranges = index.ranges(of: 9..<10, kinds: nil)
        #expect(ranges.contains(1000 << 10..<1550 << 10), "\(ranges)")
        #expect(!Self.index.ranges(of: 9..<10).isEmpty)
    }

    @Test("The playable seconds are those of the cached span that contains the start")
    func playableSeconds() {
        let cached = ByteRangeSet([0..<1000, Self.bytes(2..<5)])
        #expect(Self.index.playableSeconds(of: 3..<9, cached: cached) == 2)
        #expect(Self.index.playableSeconds(of: 3..<4, cached: cached) == 1)
        #expect(Self.index.playableSeconds(of: 5..<6, cached: cached) == 0)
        #expect(Self.index.playableSeconds(of: 20..<21, cached: cached) == 0)
        #expect(Self.index.end == 10)
        var open = Self.index
        open.duration = nil
        #expect(open.end == 10)
    }

    @Test("A Matroska file without cues plays from its beginning only")
    func sequential() {
        var index = Self.index
        (index.container, index.layout) = (.matroska, .none)
        #expect(index.spanRanges(of: 8..<9).contains(Self.bytes(0..<1).lowerBound..<1100))
        #expect(index.playableSpans(cached: ByteRangeSet([0..<1000, Self.bytes(4..<8)])).isEmpty)
        #expect(index.playableSpans(cached: ByteRangeSet([0..<1000, Self.bytes(0..<3)])) == [0..<3])
    }

    @Test("An MP3 file plays from its beginning only, because ffmpeg and mpv read it so")
    func sequentialSound() {
        var index = Self.index
        (index.container, index.layout) = (.mp3, .headIndex)
        #expect(index.spanRanges(of: 8..<9).contains(Self.bytes(0..<1).lowerBound..<1100))
        #expect(index.playableSpans(cached: ByteRangeSet([0..<1000, Self.bytes(4..<8)])).isEmpty)
    }

    @Test("Sound begins earlier by the media time before the edit")
    func edits() {
        var index = Self.index
        index.editSeconds = 1.5
        // The sync sample is at 4 s, so sound begins at 2.25 s.
        let before = Self.bytes(2..<3).upperBound
        #expect(index.cutSpanRanges(of: 5..<6).contains(before - 10..<before))
        #expect(!Self.index.cutSpanRanges(of: 5..<6).contains(1320..<1330))
        #expect(!index.cutSpanRanges(of: 5..<6).contains(Self.bytes(2..<3).lowerBound..<1221))
    }

    @Test("A sample close behind a block of 32 KiB includes the block before it")
    func blockBefore() {
        var index = Self.index
        index.indexRanges = [0..<1000]
        for track in index.tracks.indices {
            index.tracks[track].pieces = index.tracks[track].pieces.map { piece in
                .init(time: piece.time, bytes: piece.bytes.lowerBound << 15..<piece.bytes.upperBound << 15)
            }
        }
        let start = (Self.bytes(8..<9).lowerBound - 10) << 15
        #expect(index.ranges(of: 8.5..<9).contains(start - 16 << 10..<start))
        #expect(!index.ranges(of: 8.5..<9).contains(start - 64 << 10..<start))
    }

    @Test("Nothing is playable without the index, and everything with the whole file")
    func whole() {
        #expect(Self.index.playableSpans(cached: ByteRangeSet([1..<3000])).isEmpty)
        #expect(Self.index.playableSpans(cached: ByteRangeSet([0..<2100])) == [0..<10])
        #expect(Self.index.playableSpans(cached: ByteRangeSet([0..<1000])).isEmpty)
    }

    @Test("A span behind a gap begins with the next sync sample")
    func gaps() {
        let cached = ByteRangeSet([0..<1000, Self.bytes(0..<1), Self.bytes(3..<7)])
        #expect(Self.index.playableSpans(cached: cached) == [0..<1, 4..<7])
        var withoutSound = cached
        withoutSound.remove(1000 + 5 * 110 + 100..<1000 + 5 * 110 + 101)
        #expect(Self.index.playableSpans(cached: withoutSound) == [0..<1, 4..<5, 6..<7])
        #expect(Self.index.playableSpans(cached: withoutSound, kinds: [.video]) == [0..<1, 4..<7])
    }

    @Test("Spans are playable exactly if all their pieces are cached")
    func randomSets() {
        var generator = SeededRandom(seed: 7)
        for _ in 0..<300 {
            var cached = ByteRangeSet([0..<1000])
            for _ in 0..<Int.random(in: 0...12, using: &generator) {
                let start = Int64.random(in: 1000..<2100, using: &generator)
                cached.insert(start..<start + Int64.random(in: 1...400, using: &generator))
            }
            let spans = Self.index.playableSpans(cached: cached)
            for start in 0..<10 {
                for end in start + 1...10 {
                    let span = Double(start)..<Double(end)
                    let needed = Self.index.tracks.flatMap { track in
                        let decodeStart = track.syncTimes.last { $0 <= span.lowerBound } ?? span.lowerBound
                        return track.pieces.filter {
                            $0.time.upperBound > decodeStart && $0.time.lowerBound < span.upperBound
                        }
                    }
                    let isPlayable = needed.allSatisfy { cached.contains($0.bytes) }
                    let isListed = spans.contains {
                        $0.lowerBound <= span.lowerBound && span.upperBound <= $0.upperBound
                    }
                    #expect(isPlayable == isListed, "\(span) \(spans) \(cached.runs)")
                }
            }
        }
    }
}
