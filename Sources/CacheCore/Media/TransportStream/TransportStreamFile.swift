/// Reader of the time stamps of a transport stream.
struct TransportStreamFile {
    /// A time stamp of the reference stream.
    private struct Mark {
        var position: Int64
        var ticks: Int64
    }

    private static let firstRead: Int64 = 64 << 10
    private static let headLimit: Int64 = 1_200_000
    /// The head is long enough with time stamps of so many seconds, even if a stream has none.
    private static let headSeconds = 2.0
    private static let probeLength: Int64 = 16 << 10
    private static let longestProbe: Int64 = 128 << 10
    private static let probeCount: Int64 = 16
    /// The smallest distance of probes in bytes.
    private static let probeDistance: Int64 = 512 << 10
    /// Marks of the head with a smaller distance in seconds are omitted.
    private static let markDistance = 0.25

    private var buffer: MediaReadBuffer
    /// The position of the first packet.
    private(set) var start: Int64
    private let packetSize: Int64
    private(set) var program = TransportStreamProgram()
    private var head: TransportStreamScan
    private var tail: TransportStreamScan
    /// The PID of the stream whose time stamps are used: video, else audio.
    private var reference = 0
    /// The first presentation time of audio and video in units of 90 kHz.
    private var origin: Int64 = 0
    /// The difference between the time stamp of the reference stream and the program clock at the same position.
    private var clockDelay: Int64 = 0
    /// The largest difference between the times of streams at the same position in seconds, with a reserve.
    private(set) var spread = 0.5
    private var probed: [Mark] = []

    /// Finds the first packet behind ID3 tags. Throws `.unsupported` if there is none.
    init(source: MediaSource, limits: MediaLimits) async throws(MediaError) {
        buffer = MediaReadBuffer(source: source, byteLimit: Int64(limits.indexBytes))
        let tagsEnd = try await ID3Tag.end(in: &buffer, ahead: Self.firstRead)
        let bytes = try await buffer.view(tagsEnd..<tagsEnd + Self.firstRead)
        guard let grid = TransportStreamGrid(in: bytes, at: tagsEnd) else {
            throw .unsupported("No MPEG-TS packet at the beginning: \(bytes.hexadecimal(at: tagsEnd))")
        }
        start = grid.firstSync
        packetSize = grid.size
        head = TransportStreamScan(from: grid.firstSync)
        tail = TransportStreamScan(from: grid.firstSync)
    }

    /// The position behind the packets of the head.
    var headEnd: Int64 { head.end }

    /// Reads from the start on until the program and a time stamp of each stream are found.
    mutating func readHead() async throws(MediaError) {
        var program = TransportStreamProgram()
        var length = Self.firstRead
        while true {
            let bytes = try await buffer.view(ByteRange(offset: start, length: length))
            head.add(bytes, size: packetSize) { program.add($0) }
            guard length < Self.headLimit, bytes.end < buffer.source.length else { break }
            if program.isComplete, isSufficient(program) { break }
            length = min(2 * length, Self.headLimit)
        }
        guard program.isComplete else { throw .unsupported("MPEG-TS without a program map table at the beginning") }
        self.program = program
        try analyzeHead()
    }

    private func isSufficient(_ program: TransportStreamProgram) -> Bool {
        let stamped = Set(head.stamps.lazy.map(\.pid))
        if timed(program).isSubset(of: stamped) { return true }
        guard let first = head.stamps.first, let last = head.stamps.last(where: { $0.pid == first.pid }) else {
            return false
        }
        return TransportStreamClock.seconds(from: first.decoding, to: last.decoding) > Self.headSeconds
    }

    /// The PIDs of audio and video; of all streams if there is neither.
    private func timed(_ program: TransportStreamProgram) -> Set<Int> {
        let audiovisual = program.streams.filter { $0.kind == .video || $0.kind == .audio }
        return Set((audiovisual.isEmpty ? program.streams : audiovisual).map(\.pid))
    }

    /// Chooses the reference stream and measures the distances between the streams.
    private mutating func analyzeHead() throws(MediaError) {
        for stamp in head.stamps { program.setKind(of: stamp.pid, streamID: stamp.streamID) }
        let pids = timed(program)
        let stamps = head.stamps.filter { pids.contains($0.pid) }
        guard let first = stamps.first else { throw .unsupported("MPEG-TS without time stamps at the beginning") }
        let stamped = Set(stamps.map(\.pid))
        let candidates = program.streams.filter { stamped.contains($0.pid) }
        reference = (candidates.first { $0.kind == .video } ?? candidates.first)?.pid ?? first.pid
        let earliest =
            stamped.compactMap { pid in stamps.first { $0.pid == pid } }
            .map { TransportStreamClock.seconds(from: first.presentation, to: $0.presentation) }.min() ?? 0
        origin = first.presentation + Int64(saturating: earliest * TransportStreamClock.ticksPerSecond)
        if let stamp = stamps.first(where: { $0.pid == reference }),
            let clock = head.clocks.last(where: { isClock($0) && $0.position <= stamp.position })
        {
            clockDelay = stamp.decoding - clock.decoding
        }
        var time: Double?
        for stamp in stamps {
            let own = TransportStreamClock.seconds(from: origin, to: stamp.presentation)
            if stamp.pid == reference { time = own }
            if let time { spread = min(3, max(spread, abs(own - time) + 0.25)) }
        }
    }

    private func isClock(_ stamp: TransportStreamScan.Stamp) -> Bool { stamp.pid == program.clockPID }

    /// Reads the last bytes of the file.
    mutating func readTail(_ length: Int64) async throws(MediaError) {
        let range = max(head.end, buffer.source.length - length)..<max(head.end, buffer.source.length)
        tail = TransportStreamScan(from: range.lowerBound)
        tail.add(try await buffer.view(range), size: packetSize)
    }

    /// Measures times at even distances between head and tail.
    mutating func readBetween() async throws(MediaError) {
        let tailStart = tail.start
        let count = min(Self.probeCount, (tailStart - head.end) / Self.probeDistance)
        guard count > 0 else { return }
        for index in 1...count {
            let position = head.end + (tailStart - head.end) / (count + 1) * index
            for length in [Self.probeLength, Self.longestProbe] {
                var scan = TransportStreamScan(from: position)
                scan.add(try await buffer.view(ByteRange(offset: position, length: length)), size: packetSize)
                if let mark = marks(scan).first {
                    probed.append(mark)
                    break
                }
            }
        }
    }

    /// The times of the reference stream; without any, those of the program clock.
    private func marks(_ scan: TransportStreamScan) -> [Mark] {
        let stamps = scan.stamps.filter { $0.pid == reference }
        if !stamps.isEmpty { return stamps.map { Mark(position: $0.position, ticks: $0.decoding) } }
        return scan.clocks.filter(isClock).map { Mark(position: $0.position, ticks: $0.decoding + clockDelay) }
    }

    /// The map of the measured times. Throws `.unsupported` if the end is not later than the beginning.
    func timeMap() throws(MediaError) -> MediaTimeMap {
        var points: [MediaTimeMap.Point] = []
        var (ticks, time) = (origin, 0.0)
        for mark in marks(head) + probed + marks(tail) {
            let next = time + TransportStreamClock.seconds(from: ticks, to: mark.ticks)
            (ticks, time) = (mark.ticks, next)
            if next - (points.last?.time ?? 0) >= Self.markDistance {
                points.append(.init(position: mark.position, time: next))
            }
        }
        let pids = timed(program)
        let stamps = (head.stamps.suffix(64) + tail.stamps).filter { pids.contains($0.pid) }
        let last = stamps.map { TransportStreamClock.seconds(from: ticks, to: $0.presentation) }.max() ?? 0
        let duration = time + max(0, last) + 0.04  // the last frame
        let (first, end) = (MediaTimeMap.Point(position: 0, time: 0), buffer.source.length)
        guard duration > 0.04, end > 0 else { throw .unsupported("MPEG-TS with discontinuous time stamps") }
        return MediaTimeMap(first: first, between: points, last: .init(position: end, time: duration))
    }
}
