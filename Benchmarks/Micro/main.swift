import CacheCore
import CacheStore
import Foundation
import Logging
import TestChance

// MicroBench: the processor time of single steps of a read, and its growth with size.
let measure = Measure()
var random = SeededRandom(seed: 1)

/// Ranges of 4 KiB with gaps of the same size.
func extents(_ count: Int) -> ByteRangeSet {
    ByteRangeSet((0..<Int64(count)).map { ByteRange(offset: $0 * 8192, length: 4096) })
}

for count in [1, 100, 10_000] {
    var set = extents(count)
    measure("ByteRangeSet: insert and remove a range", size: count) {
        let run = ByteRange(offset: Int64.random(in: 0..<Int64(count), using: &random) * 8192 + 5000, length: 1000)
        set.insert(run)
        set.remove(run)
    }
    var found = 0
    measure("ByteRangeSet: find the range of a byte", size: count) {
        let offset = Int64.random(in: 0..<Int64(count) * 8192, using: &random)
        found += set.run(containing: offset) == nil ? 0 : 1
    }
    precondition(set == extents(count) && found > 0)
}

for count in [1, 100, 1000] {
    let length: Int64 = 1 << 30
    var present = FillLedger(
        settings: .init(), length: length, acceptsRanges: true, extents: ByteRangeSet([0..<length]))
    let readers = (0..<count).map { _ in
        present.join(opening: .closed(0..<1), priority: .live, needsConfirmation: false).0
    }
    measure("FillLedger: want 64 cached KiB, and advance", size: count) {
        let reader = readers[Int.random(in: 0..<count, using: &random)]
        let run = ByteRange(offset: Int64.random(in: 0..<length - 65_536, using: &random), length: 65_536)
        _ = present.want(run, by: reader)
        _ = present.poll(reader)
        _ = present.advance(reader, to: run.upperBound)
    }
    var missing = FillLedger(settings: .init(), length: length, acceptsRanges: true, extents: ByteRangeSet())
    for number in 0..<Int64(count) {
        let (reader, _) = missing.join(opening: .closed(0..<1), priority: .live, needsConfirmation: false)
        _ = missing.want(ByteRange(offset: number << 20, length: 65_536), by: reader)
        _ = missing.poll(reader)
    }
    measure("FillLedger: join a running fill, and leave", size: count) {
        let (reader, _) = missing.join(opening: .closed(0..<1), priority: .live, needsConfirmation: false)
        let place = Int64.random(in: 0..<Int64(count), using: &random) << 20
        _ = missing.want(ByteRange(offset: place, length: 1000), by: reader)
        _ = missing.poll(reader)
        _ = missing.leave(reader)
    }
}

for count in [1, 10, 100] {
    let text = "bytes=" + (0..<count).map { "\($0 * 1000)-\($0 * 1000 + 499)" }.joined(separator: ",")
    var ranges = 0
    measure("RangeHeader.parse", size: count) {
        if case .ranges(let specs) = RangeHeader.parse(text) { ranges += specs.count }
    }
    precondition(ranges > 0)
}

let generation = Generation(
    length: 1 << 30, contentType: "video/mp4", validators: Validators(entityTag: EntityTag("\"v1\"")),
    headers: ["Content-Type": "video/mp4", "Cache-Control": "max-age=3600", "ETag": "\"v1\""],
    receivedAt: Timestamp(seconds: 1_780_000_000))
let request = ContentRequest(headers: ["Range": "bytes=1000-2000", "Host": "localhost", "Accept": "*/*"])
var planned: Int64 = 0
measure("ContentPlan.make", size: 1) {
    let now = Timestamp(seconds: 1_780_000_100)
    planned += ContentPlan.make(request, generation: generation, now: now, boundary: "x").neededBytes
}

func segment(_ number: Int) -> SegmentID {
    let asset = UInt64(number / 16) &* 0x9E37_79B9_7F4A_7C15
    return SegmentID(asset: AssetID(high: asset, low: ~asset), index: Int32(number % 16))
}

for count in [10_000, 100_000, 1_000_000] {
    var policy = EvictionAlgorithm.s3fifo.policy(capacityBytes: Int64(count) << 20)
    for number in 0..<count { policy.admit(segment(number), bytes: 1 << 20) }
    var next = count
    measure("S3-FIFO: evict a segment, and admit another", size: count) {
        for victim in policy.victims(toFree: 1 << 20, sparing: { _ in false }) { policy.remove(victim.segment) }
        policy.admit(segment(next), bytes: 1 << 20)
        next += 1
    }
}

assetLists()

try await commits()

/// Measured in wall-clock time, because the disk dominates.
@MainActor func commits() async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-micro-\(getpid())").path
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let store = try Store.open(
        directory: directory, wallClock: PolicyEntry(), logger: Logger(label: "micro") { _ in SwiftLogNoOpLogHandler() }
    )
    let queue = CommitQueue(store: store, uptime: ContinuousClock().stopwatch())
    let piece = [UInt8](repeating: 7, count: 16 << 10)
    for count in [1, 10, 100] {
        var files: [SparseFile] = []
        for number in 0..<count {
            let id = AssetID(high: UInt64(count), low: UInt64(number))
            let file = try store.createFile(asset: id, generation: 1)
            let record = AssetRecord(
                id: id, key: "/o/media/\(count)/\(number)", origin: "media", url: "http://media.example/\(number)",
                generation: generation, createdAt: PolicyEntry().now(), lastAccessAt: PolicyEntry().now())
            queue.began(record, file: file)
            files.append(file)
        }
        try await queue.flush()
        var times: [Double] = []
        for turn in 0..<20 as Range<Int64> {
            for file in files {
                try piece.withUnsafeBytes { try file.write($0, at: turn << 14) }
                queue.grew(file, [ByteRange(offset: turn << 14, length: 16 << 10)])
            }
            let clock = ContinuousClock()
            let began = clock.now
            try await queue.flush()
            times.append((clock.now - began) / .milliseconds(1))
        }
        times.sort()
        let texts = [times[10], times[0], times[19]].map { String(format: "%.1f ms", $0) }
        let spread = "\(texts[1]) … \(texts[2])"
        print("| commit: sync files that have grown by 16 KiB | \(count) | \(texts[0]) | \(spread) |")
    }
    try store.close()
}

struct PolicyEntry: WallClock {
    func now() -> Timestamp { Timestamp(seconds: 1_780_000_000) }
}

let histogram = Histogram(.seconds)
for microseconds in [100, 20_000, 90_000_000] {
    let duration = Duration.microseconds(microseconds)
    measure("Histogram: record a duration", size: microseconds) { histogram.record(duration.inSeconds, shard: 3) }
}
let stopwatchClock = ContinuousClock()
measure("Stopwatch: start and read twice", size: 1) {
    let stopwatch = (stopwatchClock as any Clock<Duration>).stopwatch()
    histogram.record((stopwatch() + stopwatch()).inSeconds)
}
