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

    private let jobs: PrefetchJobs
    private let owner: TokenOwner?
    /// Nil before the first item.
    private(set) var intake: JobIntake?
    private var head: JSON?
    /// The items that are not checked yet, and the numbers of their lines.
    private var batch: [(line: Int, item: CreateJobRequest.Item)] = []
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
            rest += view[..<end]
            view = view[(end + 1)...]
            try await endLine()
        }
        rest += view
        guard rest.count <= lineLimit else {
            throw located(CacheError(.payloadTooLarge, "The line is longer than \(lineLimit) bytes."), at: line + 1)
        }
    }

    /// Checks the rest of the body. Throws `.invalidField` without an item.
    mutating func finish() async throws -> JobIntake {
        try await endLine()
        try await check()
        guard let intake, intake.count > 0 else {
            throw CacheError.invalid("items", "At least one line with an item is expected here.")
        }
        return intake
    }

    private mutating func endLine() async throws {
        line += 1
        defer { rest.removeAll(keepingCapacity: true) }
        guard rest.contains(where: { ![0x20, 0x09, 0x0D].contains($0) }) else { return }  // an empty line
        let isFirst = intake == nil && batch.isEmpty && head == nil
        do throws(CacheError) {
            switch try CreateJobRequest.Line(JSONParser.parse(rest)) {
            case .item(let item): batch.append((line, item))
            case .head(let json):
                guard isFirst else { throw .invalid("job", "Only the first line can have the members of the job.") }
                head = json
                try await begin()
            }
        } catch {
            throw located(error, at: line)
        }
        if batch.count >= JobIntake.batch { try await check() }
    }

    /// Begins the job with the members of the first line.
    private mutating func begin() async throws(CacheError) {
        var order = try CreateJobRequest(head: head)
        order.owner = owner
        isDryRun = order.isDryRun
        intake = try await jobs.intake(order)
    }

    /// Checks the items of the batch.
    private mutating func check() async throws {
        guard !batch.isEmpty else { return }
        if intake == nil { try await begin() }
        let items = batch.map(\.item)
        let lines = batch.map(\.line)
        batch.removeAll(keepingCapacity: true)
        do throws(CacheError) {
            try await intake?.add(items)
        } catch {
            guard let refusal = await intake?.refusal(of: items) else { throw error }
            throw located(refusal.error, at: lines[refusal.place])
        }
    }

    /// The error with the number of its line.
    private func located(_ error: CacheError, at line: Int) -> CacheError {
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
