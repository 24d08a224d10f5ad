import CacheCore
import CacheEngine
import Cryptography
import HTTPTypes
import NIOCore
import ReaderAccess

/// Reads a job in lines (`application/x-ndjson`): an optional first line with the members of the job, and one item on each
/// further line. The items are checked in batches while the body arrives, which holds back the client.
struct JobLines {
    /// The media type of the body (https://github.com/ndjson/ndjson-spec).
    static let mediaType = "application/x-ndjson"
    /// The parts of a batch that are checked at the same time.
    private static let width = 2

    /// A line that is not empty.
    private struct Line: Sendable {
        let number: Int
        let bytes: [UInt8]
    }

    private let jobs: PrefetchJobs
    private let owner: TokenOwner?
    /// Nil before the first line.
    private(set) var intake: JobIntake?
    private var hasBegun = false
    /// The lines of the part of the body that are not checked yet.
    private var batch: [Line] = []
    /// The bytes of the line that has not ended.
    private var rest: [UInt8] = []
    private var line = 0
    private var bytes = 0
    private let hash = RunningHash(.sha256)

    init(_ jobs: PrefetchJobs, owner: TokenOwner?) { (self.jobs, self.owner) = (jobs, owner) }

    /// The digest of the body.
    var fingerprint: String { hash?.digest.hexDigits ?? "" }

    /// Whether no job is made.
    private(set) var isDryRun = false

    /// Adds a part of the body. Throws the error of the first invalid line with its number, and `.payloadTooLarge`.
    mutating func add(_ part: ByteBuffer, upTo limit: Int, lineLimit: Int) async throws {
        bytes += part.readableBytes
        guard bytes <= limit else {
            throw CacheError(.payloadTooLarge, "The body is longer than \(limit) bytes.")
        }
        part.withUnsafeReadableBytes { hash?.update($0) }
        var view = part.readableBytesView[...]
        while let end = view.firstIndex(of: UInt8(ascii: "\n")) {
            try extend(view[..<end], upTo: lineLimit)
            view = view[(end + 1)...]
            try await endLine()
        }
        try extend(view, upTo: lineLimit)
        // A slow client learns of an invalid line at once.
        try await check()
    }

    /// Checks the rest of the body. Throws `.invalidField` without an item.
    mutating func finish() async throws -> JobIntake {
        try await endLine()
        try await check()
        let unsaved = intake?.unsaved
        try await intake?.keep(unsaved?.written())
        guard let intake, intake.count > 0 else {
            throw CacheError.invalid("items", "At least one line with an item is expected here.")
        }
        return intake
    }

    /// Adds bytes to the line that has not ended.
    private mutating func extend(_ bytes: ByteBufferView, upTo limit: Int) throws(CacheError) {
        guard rest.count + bytes.count <= limit else {
            throw Self.located(CacheError(.payloadTooLarge, "The line is longer than \(limit) bytes."), at: line + 1)
        }
        rest += bytes
    }

    private mutating func endLine() async throws {
        line += 1
        defer { rest.removeAll(keepingCapacity: true) }
        guard rest.contains(where: { ![0x20, 0x09, 0x0D].contains($0) }) else { return }  // an empty line
        if !hasBegun {
            hasBegun = true
            if try await begin(rest) { return }
        }
        batch.append(Line(number: line, bytes: rest))
        if batch.count >= Self.width * JobIntake.batch { try await check() }
    }

    /// Begins the job. Returns whether the first line has its members; otherwise it is an item.
    private mutating func begin(_ first: [UInt8]) async throws -> Bool {
        do throws(CacheError) {
            var head: JSON?
            if case .head(let json) = try CreateJobRequest.Line(JSONParser.parse(first)) { head = json }
            var order = try CreateJobRequest(head: head)
            order.owner = owner
            isDryRun = order.isDryRun
            intake = try await jobs.intake(order)
            return head != nil
        } catch {
            throw Self.located(error, at: line)
        }
    }

    /// Checks the lines of the batch, several parts at the same time, and adds their items. Meanwhile those of the batch
    /// before are written.
    private mutating func check() async throws {
        guard let check = intake?.check, !batch.isEmpty else { return }
        let unsaved = intake?.unsaved
        async let written = unsaved?.written()
        let (first, size) = (intake?.count ?? 0, (batch.count + Self.width - 1) / Self.width)
        let parts = stride(from: 0, to: batch.count, by: size).map { start in
            (start: first + start, lines: batch[start..<min(start + size, batch.count)])
        }
        batch = []
        let results = await parts.mapConcurrently(atMost: Self.width) { part in
            await Self.records(of: part.lines, from: part.start, check)
        }
        try await intake?.keep(written)
        for result in results { try intake?.add(try result.get()) }
    }

    /// The items of lines; the error of the first invalid one.
    private static func records(
        of lines: ArraySlice<Line>, from first: Int, _ check: JobIntake.Check
    ) async -> Result<[JobItemRecord], CacheError> {
        do throws(CacheError) {
            var items: [CreateJobRequest.Item] = []
            for line in lines { items.append(try item(line)) }
            return .success(try await check.records(of: items, from: first))
        } catch {
            for (place, line) in lines.enumerated() {
                do throws(CacheError) {
                    _ = try await check.records(of: [try item(line)], from: first + place)
                } catch {
                    return .failure(located(error, at: line.number))
                }
            }
            return .failure(error)
        }
    }

    private static func item(_ line: Line) throws(CacheError) -> CreateJobRequest.Item {
        switch try CreateJobRequest.Line(JSONParser.parse(line.bytes)) {
        case .item(let item): return item
        case .head: throw .invalid("job", "Only the first line can have the members of the job.")
        }
    }

    /// The error with the number of its line.
    private static func located(_ error: CacheError, at line: Int) -> CacheError {
        var located = error
        located.message = "Line \(line): \(error.message)"
        return located
    }
}

extension JobLines {
    /// The error of a job in lines that cannot be received now.
    static func refused(_ limit: UsageLedger<String>.Refusal) -> CacheError {
        switch limit {
        case .share: CacheError(.overloaded, "Another job in lines of this token is being received; repeat later.")
        case .total: CacheError(.overloaded, "Too many jobs in lines are being received; repeat later.")
        }
    }
}
