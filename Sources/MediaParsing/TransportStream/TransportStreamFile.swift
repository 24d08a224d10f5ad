import CacheCore

/// Reader of the time stamps of a transport stream.
struct TransportStreamFile {
    private static let firstRead: Int64 = 64 << 10
    private static let headLimit: Int64 = 1_200_000
    /// The head is long enough with time stamps of so many seconds, even if a stream has none.
    private static let headSeconds = 2.0
    /// The longest time without a measurement: the clock repeats its values after 26.5 hours.
    private static let longestGap = 6.0 * 3600
    private static let mostBetween = 16.0

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

    /// The measured times of head and tail, and of further positions if the file can be longer than ``longestGap``.
    ///
    /// Throws `.unsupported` if the end is not later than the beginning.
    func map(_ source: MediaSource, limit: Int) async throws(MediaError) -> TransportStreamMap {
        var map = TransportStreamMap(
            start: start, length: source.length, packetSize: packetSize, reference: reference,
            clockPID: program.clockPID, clockDelay: clockDelay, origin: origin, spread: spread, limit: limit)
        let headMarks = map.marks(head)
        map.add(headMarks + map.marks(tail))
        if let first = headMarks.first, let last = headMarks.last, first != last {
            let seconds = TransportStreamClock.seconds(from: first.ticks, to: last.ticks)
            let total = seconds * Double(source.length) / Double(max(1, last.position - first.position))
            let count = Int64(saturating: min(Self.mostBetween, total / Self.longestGap))
            for index in 0..<max(0, count) {
                try await map.measure(at: source.length / (count + 1) * (index + 1), source)
            }
        }
        let pids = timed(program)
        let stamps = (head.stamps.suffix(64) + tail.stamps).filter { pids.contains($0.pid) }.map(\.presentation)
        try map.end(behind: stamps)
        return map
    }
}
