import CacheCore
import MediaParsing
import Synchronization
import TestMedia

/// Parsers of media files and playlists.
extension Surface {
    static let media = [
        index("MP4", [MovieBuilder().file(), MovieBuilder().tailFile(), fragmented, chaptered], MP4Parser.index),
        index("Matroska", [matroska, chapteredMatroska], MatroskaParser.index),
        index("MP3", [mp3], MP3Parser.index),
        index("MPEG-TS", [transportStream], TransportStreamParser.index),
        playlist("HLS", [mediaPlaylist, multivariantPlaylist]) { try HLSParser.playlist($0, limits: limits) },
        playlist("DASH", [template, list, live]) { try DASHParser.manifest($0, limits: limits, now: 1_000_000) },
    ]

    private static let limits: MediaLimits = {
        var limits = MediaLimits()
        limits.indexBytes = 1 << 20
        limits.pieces = 1000
        limits.segments = 1000
        limits.fragments = 100
        return limits
    }()

    /// Each seed must have an index.
    private static func index(
        _ name: String, _ seeds: [[UInt8]],
        _ parse: @escaping @Sendable (MediaSource, MediaLimits) async throws(MediaError) -> MediaIndex
    ) -> Surface {
        Surface(name: name, seeds: seeds) { bytes in
            let source = MediaSource(length: Int64(bytes.count)) { range throws(MediaError) in
                Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
            }
            let parsed = InlineExecutor.run {
                guard var index = try? await parse(source, limits) else { return nil as MediaIndex? }
                // Errors of damaged media data are valid results; the index stays consistent.
                try? await index.refine(for: 2..<10, source)
                try? await index.explore(ByteRangeSet([0..<Int64(bytes.count / 2)]), source)
                return index
            }
            guard let index = parsed else {
                return !seeds.contains(bytes)
            }
            let whole = 0..<Int64(bytes.count)
            let isInside = (index.indexRanges + index.tracks.flatMap(\.pieces).map(\.bytes)).allSatisfy {
                $0.clamped(to: whole) == $0
            }
            let needed = index.ranges(of: 0..<10, length: Int64(bytes.count))
            return isInside && needed.runs.allSatisfy { $0.clamped(to: whole) == $0 }
                && (index.bytes(inPartsOfTime: 10)?.count ?? 0) <= 10
        }
    }

    private static func playlist(
        _ name: String, _ texts: [String], _ parse: @escaping @Sendable ([UInt8]) throws -> MediaPlaylist
    ) -> Surface {
        let seeds = texts.map { Array($0.utf8) }
        return Surface(name: name, seeds: seeds) { bytes in
            (try? parse(bytes)).map(isBounded) ?? !seeds.contains(bytes)
        }
    }

    private static func isBounded(_ playlist: MediaPlaylist) -> Bool {
        let segmentCount = playlist.renditions.reduce(0) { $0 + $1.segments.count }
        _ = (playlist.liveStart, playlist.updateInterval, playlist.choices)
        _ = playlist.selected(.matching(RenditionFilter(maxHeight: 720, language: "de", codecs: "avc1")))
        _ = playlist.combined(
            playlist.renditions.map { TimeSpans.playable(in: 0..<10, missing: $0.segments.map(\.time)) },
            either: TimeSpans.union, both: TimeSpans.intersection)
        for rendition in playlist.renditions {
            _ = playlist.playbackResources(of: 0..<10, in: rendition, keys: true)
        }
        return segmentCount <= limits.segments && playlist.renditions.count <= limits.renditions
    }

    // MARK: Seeds

    private static let chaptered: [UInt8] = {
        typealias B = BoxBuilder
        var movie = MovieBuilder()
        movie.language = 0x1195
        movie.movieExtras = B.box("udta", B.full("chpl", version: 1, B.u32(0), B.u8(1), B.u64(9), B.u8(1), [65]))
        return movie.file()
    }()
    private static let fragmented: [UInt8] = {
        typealias B = BoxBuilder
        var movie = MovieBuilder()
        (movie.duration, movie.chunkOffsets) = (0, [])
        (movie.stts, movie.stss, movie.stsc) = (B.full("stts", B.u32(0)), [], B.full("stsc", B.u32(0)))
        movie.stsz = B.full("stsz", B.u32(0, 0))
        movie.movieExtras = B.box("mvex", B.full("trex", B.u32(1, 1, 1000, 100, 0)))
        let fragment = { (time: Int) in
            let tfhd = B.full("tfhd", flags: 0x20000, B.u32(1))
            let traf = B.box("traf", tfhd, B.full("tfdt", B.u32(time)), B.full("trun", B.u32(2)))
            return B.box("moof", B.full("mfhd", B.u32(1)), traf) + B.box("mdat", [UInt8](repeating: 1, count: 200))
        }
        let size = fragment(0).count
        let sidx = B.full("sidx", B.u32(1, 1000, 0, 0), B.u16(0, 2), B.u32(size, 2000, 1 << 31, size, 2000, 1 << 31))
        return MovieBuilder.ftyp + movie.moov(mediaStart: 0) + sidx + fragment(0) + fragment(2000)
    }()

    private static let matroska: [UInt8] = {
        let cues = EBMLBuilder.cues([(0, 100), (1000, 300), (9000, 500)])
        let clusters = (0..<6).flatMap { EBMLBuilder.cluster($0 * 1000) }
        return EBMLBuilder.header + EBMLBuilder.element(0x1853_8067, EBMLBuilder.tracks + cues + clusters)
    }()

    private static let chapteredMatroska: [UInt8] = {
        typealias E = EBMLBuilder
        let atom = E.element(0xB6, E.element(0x91, [9]) + E.element(0x80, E.element(0x85, [65])))
        let chapters = E.element(0x1043_A770, E.element(0x45B9, atom))
        let details = E.element(0x22_B59C, [0x64, 0x65]) + E.element(0xE0, E.element(0xB0, [9]) + E.element(0xBA, [9]))
        let track = E.element(0xD7, [1]) + E.element(0x83, [1]) + E.element(0x86, Array("V_VP9".utf8)) + details
        let tracks = E.element(0x1654_AE6B, E.element(0xAE, track))
        return E.header + E.element(0x1853_8067, tracks + chapters + (0..<3).flatMap { E.cluster($0 * 1000) })
    }()

    /// Ten frames of 128 kbit/s at 44.1 kHz (417 bytes), the first one with an Info header.
    private static let mp3: [UInt8] = {
        let frame = [0xFF, 0xFB, 0x90, 0x00] + [UInt8](repeating: 0, count: 413)
        var first = frame
        first.replaceSubrange(36..<48, with: Array("Info".utf8) + [0, 0, 0, 3, 0, 0, 0, 9])
        return first + (0..<9).flatMap { _ in frame }
    }()

    /// A program with one video stream: association table, map table, and twenty packets with time stamps.
    private static let transportStream: [UInt8] = {
        let packet = { (pid: Int, payload: [UInt8]) -> [UInt8] in
            let head: [UInt8] = [0x47, UInt8(0x40 | pid >> 8), UInt8(pid & 0xFF), 0x10]
            return head + payload + [UInt8](repeating: 0xFF, count: 184 - payload.count)
        }
        let association: [UInt8] = [0, 0, 0xB0, 13, 0, 1, 0xC1, 0, 0, 0, 1, 0xE1, 0x00, 0, 0, 0, 0]
        let map: [UInt8] = [0, 2, 0xB0, 18, 0, 1, 0xC1, 0, 0, 0xE1, 1, 0xF0, 0, 0x1B, 0xE1, 1, 0xF0, 0, 0, 0, 0, 0]
        let frames = (0..<20).flatMap { number -> [UInt8] in
            let time = number * 9000
            let stamp: [UInt8] = [
                UInt8(0x21 | (time >> 29) & 0xE), UInt8((time >> 22) & 0xFF), UInt8(1 | (time >> 14) & 0xFE),
                UInt8((time >> 7) & 0xFF), UInt8(1 | (time << 1) & 0xFE),
            ]
            return packet(0x101, [0, 0, 1, 0xE0, 0, 0, 0x80, 0x80, 5] + stamp)
        }
        return packet(0, association) + packet(0x100, map) + frames
    }()

    private static let mediaPlaylist = """
        #EXTM3U
        #EXT-X-TARGETDURATION:4
        #EXT-X-MAP:URI="init.mp4",BYTERANGE="100@0"
        #EXT-X-KEY:METHOD=AES-128,URI="k.bin",IV=0x00000000000000000000000000000001
        #EXTINF:4.0,
        #EXT-X-BYTERANGE:1000@100
        a.m4s
        #EXT-X-DISCONTINUITY
        #EXTINF:3.5,title
        b%20.m4s?x=1
        #EXT-X-ENDLIST
        """
    private static let multivariantPlaylist = """
        #EXTM3U
        #EXT-X-DEFINE:NAME="n",VALUE="v"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="g",NAME="a",LANGUAGE="de",DEFAULT=YES,URI="{$n}.m3u8"
        #EXT-X-STREAM-INF:BANDWIDTH=1280000,RESOLUTION=640x360,CODECS="avc1.4d401f",AUDIO="g"
        low.m3u8
        """
    private static let template = """
        <MPD type="static" mediaPresentationDuration="PT1M"><Period><AdaptationSet contentType="video">
        <SegmentTemplate timescale="1000" media="$RepresentationID$-$Number%05d$.m4s" initialization="i.mp4">
        <SegmentTimeline><S t="0" d="4000" r="3"/><S d="2000"/></SegmentTimeline></SegmentTemplate>
        <Representation id="a" bandwidth="1000000"/></AdaptationSet></Period></MPD>
        """
    private static let live = """
        <MPD type="dynamic" availabilityStartTime="1970-01-12T13:00:00Z" minimumUpdatePeriod="PT2S"
        timeShiftBufferDepth="PT1M" suggestedPresentationDelay="PT8S"><Period start="PT0S"><AdaptationSet>
        <SegmentTemplate duration="4" startNumber="5" media="$Number$.m4s"/><Representation id="a" bandwidth="1"/>
        <Representation id="b"><SegmentTemplate media="$Time$"><SegmentTimeline><S t="8" d="4" r="-1"/></SegmentTimeline>
        </SegmentTemplate></Representation></AdaptationSet></Period></MPD>
        """
    private static let list = """
        <?xml version="1.0"?><MPD mediaPresentationDuration="PT8S"><BaseURL>x/</BaseURL><Period duration="PT8S">
        <AdaptationSet mimeType="audio/mp4"><Representation id="b" bandwidth="96000"><SegmentList duration="4">
        <Initialization range="0-99"/><SegmentURL mediaRange="100-199"/><SegmentURL media="c.m4s"/>
        </SegmentList></Representation><Representation id="c"><SegmentBase indexRange="5-9"/></Representation>
        </AdaptationSet></Period></MPD>
        """
}

/// Runs asynchronous functions that never wait for another thread on the calling thread, so that their processor time is
/// that of the thread.
private final class InlineExecutor: TaskExecutor {
    private let jobs = Mutex<[UnownedJob]>([])

    private final class Shared<Value: Sendable>: Sendable {
        let value = Mutex<Value?>(nil)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    static func run<Result: Sendable>(_ body: @escaping @Sendable () async -> Result) -> Result {
        let executor = InlineExecutor()
        let result = Shared<Result>()
        Task(executorPreference: executor) {
            let value = await body()
            result.value.withLock { $0 = value }
        }
        while let job = executor.jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
            job.runSynchronously(on: executor.asUnownedTaskExecutor())
        }
        guard let result = result.value.withLock({ $0 }) else {
            preconditionFailure("The function waits for another thread.")
        }
        return result
    }
}
