import CacheCore

/// Contiguous bytes of a track with their composition times in units of the track.
struct MP4MediaPiece: Hashable {
    var start: Int64
    var end: Int64
    var bytes: ByteRange

    mutating func extend(_ next: MP4MediaPiece) {
        start = min(start, next.start)
        end = max(end, next.end)
        bytes = min(bytes.lowerBound, next.bytes.lowerBound)..<max(bytes.upperBound, next.bytes.upperBound)
    }
}

/// Merges the samples of a track into pieces of about half a second with contiguous bytes.
///
/// If the number of pieces reaches the limit, each pair of neighbours is merged and the target duration doubles; from
/// then on a piece may also contain gaps. The memory is therefore bounded by the limit.
struct MP4PieceBuilder {
    /// The pieces in decoding order.
    private(set) var pieces: [MP4MediaPiece] = []
    /// The composition times of sync samples in decoding order; a subset if there are more than the limit.
    private(set) var syncTimes: [Int64] = []
    /// The first composition time at or behind the time that the constructor got; nil: there is none.
    private(set) var firstTime: Int64?

    /// The duration of samples that can be added as one. The sample with the first time is added alone.
    var mergedDuration: Int64 { firstTime == nil ? 0 : target / 4 }

    private let limit: Int
    private let firstTimeLimit: Int64
    private let collectsSyncTimes: Bool
    private var target: Int64
    private var largestGap: Int64 = 0
    private var syncStride: Int64 = 1
    private var syncCount: Int64 = 0

    /// - Parameters:
    ///   - target: the duration of a piece in units of the track.
    ///   - limit: the largest number of pieces, and of sync times.
    ///   - firstTimeLimit: the lower bound for ``firstTime``.
    init(target: Int64, limit: Int, collectsSyncTimes: Bool, firstTimeLimit: Int64 = .min) {
        self.target = max(1, target)
        self.limit = max(2, limit)
        self.collectsSyncTimes = collectsSyncTimes
        self.firstTimeLimit = firstTimeLimit
    }

    mutating func add(_ run: MP4SampleRun) {
        noteFirstTime(run)
        let startsGroup = run.isSync && collectsSyncTimes
        if startsGroup { addSyncTime(run.time) }
        var rest = run
        var canExtend = true
        if startsGroup, let last = pieces.last { canExtend = last.end - last.start < target / 4 }
        while rest.count > 0 {
            if canExtend, let last = pieces.last, last.end - last.start < target, follows(rest, last) {
                let part = rest.removeFirst(samples(in: target - (last.end - last.start), of: rest))
                pieces[pieces.count - 1].extend(MP4MediaPiece(part))
            } else {
                let part = rest.removeFirst(samples(in: target, of: rest))
                append(MP4MediaPiece(part))
            }
            canExtend = true
        }
    }

    /// Makes the times monotonic and returns the pieces: the start of a piece is not behind the start of a later one,
    /// and its end is not before the end of an earlier one. A span of time then selects all samples that its samples
    /// need for decoding, although composition order and decoding order differ.
    consuming func finish() -> [MP4MediaPiece] {
        for index in pieces.indices.dropFirst() {
            pieces[index].end = max(pieces[index].end, pieces[index - 1].end)
        }
        for index in pieces.indices.dropLast().reversed() {
            pieces[index].start = min(pieces[index].start, pieces[index + 1].start)
        }
        return pieces
    }

    private func follows(_ run: MP4SampleRun, _ last: MP4MediaPiece) -> Bool {
        run.offset >= last.bytes.upperBound && run.offset - last.bytes.upperBound <= largestGap
    }

    private func samples(in span: Int64, of run: MP4SampleRun) -> Int64 {
        run.duration == 0 ? run.count : max(1, span / run.duration + (span % run.duration == 0 ? 0 : 1))
    }

    private mutating func append(_ piece: MP4MediaPiece) {
        if pieces.count >= limit { compact() }
        pieces.append(piece)
    }

    private mutating func compact() {
        var count = 0
        for index in stride(from: 0, to: pieces.count, by: 2) {
            var piece = pieces[index]
            if index + 1 < pieces.count { piece.extend(pieces[index + 1]) }
            pieces[count] = piece
            count += 1
        }
        pieces.removeLast(pieces.count - count)
        target = target > 1 << 60 ? target : target * 2
        largestGap = min(1 << 40, max(1 << 20, largestGap * 2))
    }

    private mutating func addSyncTime(_ time: Int64) {
        defer { syncCount += 1 }
        guard syncCount % syncStride == 0 else { return }
        if syncTimes.count >= limit {
            syncTimes = stride(from: 0, to: syncTimes.count, by: 2).map { syncTimes[$0] }
            syncStride *= 2
            guard syncCount % syncStride == 0 else { return }
        }
        syncTimes.append(time)
    }

    private mutating func noteFirstTime(_ run: MP4SampleRun) {
        var time = run.time
        if time < firstTimeLimit {
            guard run.duration > 0 else { return }
            let (distance, overflow) = firstTimeLimit.subtractingReportingOverflow(time)
            guard !overflow else { return }
            let skipped = distance / run.duration + (distance % run.duration == 0 ? 0 : 1)
            guard skipped < run.count else { return }
            time += skipped * run.duration
        }
        firstTime = min(firstTime ?? time, time)
    }
}

extension MP4MediaPiece {
    init(_ run: MP4SampleRun) {
        self.init(start: run.times.lowerBound, end: run.times.upperBound, bytes: run.bytes)
    }
}
