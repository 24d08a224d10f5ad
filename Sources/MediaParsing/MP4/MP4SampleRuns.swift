import CacheCore

/// Contiguous samples of a track with equal size, duration and composition offset.
struct MP4SampleRun: Hashable {
    /// The offset of the first sample in the file.
    var offset: Int64
    /// The bytes of one sample.
    var size: Int64
    var count: Int64
    /// The composition time of the first sample in units of the track.
    var time: Int64
    /// The duration of one sample.
    var duration: Int64
    /// Whether the first sample is a sync sample. The other samples of the run are none, unless the track has no list
    /// of sync samples.
    var isSync: Bool

    /// The composition times of all samples.
    var times: Range<Int64> { time..<time + count * duration }
    var bytes: ByteRange { offset..<offset + count * size }

    /// Removes and returns the first `most` samples.
    mutating func removeFirst(_ most: Int64) -> MP4SampleRun {
        var first = self
        first.count = min(count, most)
        offset += first.count * size
        time += first.count * duration
        count -= first.count
        isSync = false
        return first
    }
}

/// Streams the samples of a track from its tables in decoding order. Each step consumes a row of a table or a chunk, so
/// the number of steps is bounded by the size of the tables, regardless of the number of samples they state.
struct MP4SampleRuns {
    /// The limit for decoding times and for the sums of sizes; it leaves room for the composition offset.
    private static let timeLimit: Int64 = 1 << 60

    private let table: MP4SampleTable
    private let durations: MP4Table
    private let chunkRuns: MP4Table
    private let chunkOffsets: MP4Table
    /// The length of the file.
    private let fileLength: Int64

    private var sample: Int64 = 0
    /// The error of the first chunk that exceeds the file; nil: there is none.
    private(set) var missing: MediaError?
    private var decodeTime: Int64 = 0
    private var chunk = 0
    private var chunkRun = -1
    private var samplesLeftInChunk: Int64 = 0
    private var offset: Int64 = 0
    private var duration = RunLength()
    private var composition = RunLength()
    private var syncRow = 0

    /// The position in a run-length table.
    private struct RunLength {
        var row = 0
        /// The samples for which ``value`` remains valid.
        var left: Int64 = 0
        var value: UInt32 = 0

        /// Loads rows until one with samples is found. Behind the last row `value` changes to `rest` if that is given.
        mutating func load(_ table: MP4Table, rest: UInt32?) {
            while left == 0, row < table.count {
                left = Int64(table.uint32(row))
                value = table.uint32(row, at: 4)
                row += 1
            }
            if left == 0 {
                left = .max
                value = rest ?? value
            }
        }
    }

    /// - Returns: nil if the table contains no samples.
    init?(_ table: MP4SampleTable, fileLength: Int64) {
        guard table.sampleCount > 0, let durations = table.durations, let chunkRuns = table.chunkRuns,
            let chunkOffsets = table.chunkOffsets
        else { return nil }
        self.table = table
        self.durations = durations
        self.chunkRuns = chunkRuns
        self.chunkOffsets = chunkOffsets
        self.fileLength = fileLength
    }

    /// The next samples; nil at the end, and from the first ``missing`` chunk on.
    ///
    /// - Parameter merged: samples of different sizes count as one sample, with their bytes and durations together, up to
    ///   this duration in units of the track.
    /// - Throws: `malformed` with the table that contradicts the others: chunks that do not contain all samples, chunk
    ///   numbers that do not ascend, or sums that overflow.
    mutating func next(merging merged: Int64 = 0) throws(MediaError) -> MP4SampleRun? {
        guard sample < table.sampleCount, missing == nil else { return nil }
        while samplesLeftInChunk == 0, missing == nil { try openChunk() }
        guard missing == nil else { return nil }
        duration.load(durations, rest: nil)
        if let offsets = table.compositionOffsets {
            composition.load(offsets, rest: 0)
        } else {
            composition.left = .max
        }
        var count = min(samplesLeftInChunk, table.sampleCount - sample, duration.left, composition.left)
        let isSync = limitToSyncSample(&count)
        let delta = duration.value > UInt32(Int32.max) ? 1 : Int64(duration.value)
        let (size, perUnit) = sizeOfNext(&count, merging: merged / max(1, delta))
        let run = MP4SampleRun(
            offset: offset, size: size, count: count / perUnit,
            // QuickTime writes signed offsets also in version 0; ffmpeg reads both versions as signed.
            time: decodeTime + Int64(Int32(bitPattern: composition.value)), duration: delta * perUnit, isSync: isSync)
        try advance(count, delta: delta, run: run)
        return missing == nil ? run : nil
    }

    private mutating func openChunk() throws(MediaError) {
        guard chunk < chunkOffsets.count, chunkRuns.count > 0 else { throw chunkRuns.box.malformed }
        while chunkRun + 1 < chunkRuns.count, Int(chunkRuns.uint32(chunkRun + 1)) <= chunk + 1 {
            chunkRun += 1
            let isAscending = chunkRun == 0 || chunkRuns.uint32(chunkRun - 1) < chunkRuns.uint32(chunkRun)
            guard isAscending, Int(chunkRuns.uint32(chunkRun)) == chunk + 1 else {
                throw chunkRuns.malformed(row: chunkRun)
            }
        }
        guard chunkRun >= 0 else { throw chunkRuns.malformed(row: 0) }
        let start = chunkOffsets.uint(chunk, at: 0, width: table.offsetWidth)
        guard start <= UInt64(fileLength) else {
            missing = chunkOffsets.malformed(row: chunk)
            return
        }
        offset = Int64(start)
        samplesLeftInChunk = Int64(chunkRuns.uint32(chunkRun, at: 4))
        chunk += 1
    }

    /// Reduces `count` so that no sync sample is behind the first sample. Returns whether the first one is.
    private mutating func limitToSyncSample(_ count: inout Int64) -> Bool {
        guard let syncSamples = table.syncSamples else { return true }
        while syncRow < syncSamples.count, Int64(syncSamples.uint32(syncRow)) < sample + 1 { syncRow += 1 }
        guard syncRow < syncSamples.count else { return false }
        let next = Int64(syncSamples.uint32(syncRow)) - 1
        count = min(count, next == sample ? distanceToNextSync(syncSamples) : next - sample)
        return next == sample
    }

    private func distanceToNextSync(_ syncSamples: MP4Table) -> Int64 {
        guard syncRow + 1 < syncSamples.count else { return .max }
        return max(1, Int64(syncSamples.uint32(syncRow + 1)) - 1 - sample)
    }

    /// The bytes of the next unit and the number of samples of a unit. Reduces `count` to units of equal size, or to one
    /// unit of at most `merged` samples.
    private func sizeOfNext(_ count: inout Int64, merging merged: Int64) -> (size: Int64, perUnit: Int64) {
        switch table.sizes {
        case .uniform(let size): return (Int64(size), 1)
        case .packed(let frames, let bytes):
            // An incomplete packet at the end of a chunk counts as a whole one.
            guard count > Int64(frames) else { return (Int64(bytes), count) }
            count -= count % Int64(frames)
            return (Int64(bytes), Int64(frames))
        case .table(let sizes, let bits):
            let row = Int(sample)
            if bits == 32, min(count, merged) > 1 {
                let most = min(count, merged, Self.mostMerged)
                let size = sizes.sum(row..<row + Int(most))
                if size <= fileLength - offset {
                    count = most
                    return (size, most)
                }
            }
            count = 1
            guard bits == 4 else { return (Int64(sizes.uint(row, at: 0, width: bits / 8)), 1) }
            let pair = sizes.uint(row / 2, at: 0, width: 1)
            return (Int64(row % 2 == 0 ? pair >> 4 : pair & 15), 1)
        }
    }

    /// The largest number of merged samples: their sizes have 32 bits, and the sum must not overflow.
    private static let mostMerged: Int64 = 4096

    private mutating func advance(_ count: Int64, delta: Int64, run: MP4SampleRun) throws(MediaError) {
        // Both factors are less than 2^32, except for packed sizes, where the product is not larger.
        let (bytes, overflow) = run.count.multipliedReportingOverflow(by: run.size)
        guard !overflow, bytes <= fileLength - offset else {
            missing = chunkOffsets.malformed(row: chunk - 1)
            return
        }
        let (time, timeOverflow) = count.multipliedReportingOverflow(by: delta)
        guard !timeOverflow, time <= Self.timeLimit - decodeTime else {
            throw durations.malformed(row: max(0, duration.row - 1))
        }
        sample += count
        samplesLeftInChunk -= count
        duration.left -= count
        composition.left -= count
        offset += bytes
        decodeTime += time
    }
}
