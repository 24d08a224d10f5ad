import CacheAPI
import CacheCore

/// Text about one job of the API.
struct JobReport {
    private let job: JobDocument
    /// The time for ages.
    private let now: Timestamp

    init(_ job: JobDocument, at now: Timestamp) {
        self.job = job
        self.now = now
    }

    /// The output of `larder jobs JOB`: names and values.
    var text: String {
        var table = TextTable()
        table.add("job", job.jobId)
        table.add("state", job.state)
        if let label = job.label { table.add("label", label) }
        if let queue = job.queue { table.add("queue", queue) }
        table.add("priority", job.priority)
        for (name, time) in [("created", job.createdAt), ("started", job.startedAt), ("finished", job.finishedAt)] {
            if let time { table.add(name, "\(time), \(FigureText.age(now.since(time).inSeconds))") }
        }
        table.add("items", Self.items(of: job))
        table.add("bytes", Self.bytes(of: job))
        if job.bytesPerSecond > 0 { table.add("rate", FigureText.rate(job.bytesPerSecond)) }
        if let left = job.etaSeconds { table.add("remaining", FigureText.span(left)) }
        for window in job.windows { table.add("window", window) }
        if let when = job.when {
            let name = when.path.map { "/o/\(when.origin ?? "")/\($0)" } ?? when.assetId.description
            table.add("when", "a reader passes \(when.atPercent) % of \(name)")
        }
        if let cause = job.waitingFor {
            table.add("waits for", "\(cause)\(job.nextRunAt.map { " until \($0)" } ?? "")")
        }
        if let time = job.deadlineAt { table.add("deadline", "\(time)\(job.atRisk ? ", at risk" : "")") }
        if let time = job.predictedFinishAt { table.add("predicted end", "\(time)") }
        if let error = job.error { table.add("error", error.sentence) }
        return table.text
    }

    /// The figures of a finished job in one line, without a period.
    static func outcome(of job: JobDocument) -> String { "\(items(of: job)); \(bytes(of: job))" }

    /// Whether the job has ended.
    static func isFinished(_ job: JobDocument) -> Bool { JobState(rawValue: job.state)?.isFinished ?? false }

    /// Whether items wait, or ended with an error.
    static func needsAttention(_ job: JobDocument) -> Bool {
        job.itemsWaiting + job.itemsFailed + job.itemsTimedOut > 0
    }

    /// For example `1 of 3 items succeeded, 1 failed, 1 timed out`.
    static func items(of job: JobDocument) -> String {
        let isFinished = isFinished(job)
        let others = [
            (isFinished ? 0 : job.itemsWaiting, "waiting"), (job.itemsFailed, "failed"),
            (job.itemsTimedOut, "timed out"), (job.itemsCancelled, "cancelled"),
            (isFinished ? 0 : job.itemsUnknown, "of unknown size"),
        ]
        let done = "\(FigureText.count(job.itemsDone)) of \(FigureText.count(job.itemsTotal, "item")) succeeded"
        let texts = others.filter { $0.0 > 0 }.map { "\(FigureText.count($0.0)) \($0.1)" }
        return ([done] + texts).joined(separator: ", ")
    }

    /// For example `2.0 MiB of 3.0 MiB, 1.5 MiB from the cache and 512 KiB from the upstream`.
    static func bytes(of job: JobDocument) -> String {
        let whole = job.bytesTotal.map { " of " + FigureText.bytes($0) } ?? ""
        return "\(FigureText.bytes(job.bytesDone))\(whole), \(FigureText.bytes(job.bytesFromCache)) from the cache"
            + " and \(FigureText.bytes(job.bytesFromUpstream)) from the upstream"
    }
}

extension ListOutput<JobDocument> {
    /// The output of `larder jobs`.
    ///
    /// - Parameter now: The time for ages.
    static func jobs(at now: Timestamp) -> Self {
        Self(
            noun: "job",
            columns: [
                .leading("job"), .leading("state"), .trailing("items"), .trailing("waiting"), .trailing("failed"),
                .trailing("bytes"), .trailing("of"), .trailing("rate"), .leading("created"), .leading("label"),
            ],
            name: \.jobId
        ) { job in
            let failed = job.itemsFailed + job.itemsTimedOut
            return [
                [
                    job.jobId, job.state, "\(job.itemsDone)/\(job.itemsTotal)",
                    job.itemsWaiting > 0 ? FigureText.count(job.itemsWaiting) : "",
                    failed > 0 ? FigureText.count(failed) : "", FigureText.bytes(job.bytesDone),
                    job.bytesTotal.map(FigureText.bytes) ?? "unknown",
                    job.state == JobState.running.rawValue ? FigureText.rate(job.bytesPerSecond) : "",
                    FigureText.age(now.since(job.createdAt).inSeconds), job.label ?? "",
                ]
            ]
        }
    }
}

/// Items of a job with their causes of failure.
struct JobItemTable {
    private var table = TextTable(
        .trailing("item"), .leading("state"), .trailing("bytes"), .leading("asset"), .leading("cause"))

    /// Whether the item waits, or ended with an error.
    static func needsAttention(_ item: JobItemDocument) -> Bool {
        [JobState.waiting, .failed, .timedOut].contains { $0.rawValue == item.state }
    }

    /// Adds an item of the API.
    mutating func add(_ item: JobItemDocument) {
        table.add(
            FigureText.count(item.index), Self.state(of: item), FigureText.bytes(item.bytesDone), Self.name(of: item),
            item.error?.sentence ?? "")
    }

    /// As ``TextTable/takeLines()``.
    mutating func takeLines() -> String? { table.takeLines() }

    /// For example `waiting for circuit until 2026-11-27T16:30:00Z`.
    private static func state(of item: JobItemDocument) -> String {
        guard let cause = item.waitingFor else { return item.state }
        return "\(item.state) for \(cause)" + (item.retryAt.map { " until \($0)" } ?? "")
    }

    /// The asset as in the request: its URL, its mounted path, or its identifier.
    static func name(of item: JobItemDocument) -> String {
        if let origin = item.origin.value, let path = item.path.value {
            return "/o/\(origin)/\(path.drop { $0 == "/" })"
        }
        return item.url.value ?? item.assetId?.description ?? ""
    }
}

extension RecordedErrorDocument {
    /// The code and the message.
    var sentence: String { "\(code): \(message)" }
}
