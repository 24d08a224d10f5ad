import CacheCore

/// Text about one job of the API.
struct JobReport {
    private let job: JSON
    /// The time for ages.
    private let now: Timestamp

    init(_ job: JSON, at now: Timestamp) {
        self.job = job
        self.now = now
    }

    /// The output of `larder jobs JOB`: names and values.
    var text: String {
        var table = TextTable()
        table.add("job", job.text("jobId") ?? "")
        table.add("state", job.text("state") ?? "")
        if let label = job.text("label") { table.add("label", label) }
        if let queue = job.text("queue") { table.add("queue", queue) }
        table.add("priority", job.text("priority") ?? "")
        for (name, key) in [("created", "createdAt"), ("started", "startedAt"), ("finished", "finishedAt")] {
            if let time = job.time(key) {
                table.add(name, "\(job.text(key) ?? ""), \(FigureText.age(now.since(time).inSeconds))")
            }
        }
        table.add("items", Self.items(of: job))
        table.add("bytes", Self.bytes(of: job))
        if let rate = job.number("bytesPerSecond"), rate > 0 { table.add("rate", FigureText.rate(rate)) }
        if let left = job.number("etaSeconds") { table.add("remaining", FigureText.span(left)) }
        if let cause = Self.cause(of: job) { table.add("error", cause) }
        return table.text
    }

    /// The figures of a finished job in one line, without a period.
    static func outcome(of job: JSON) -> String { "\(items(of: job)); \(bytes(of: job))" }

    /// Whether items wait, or ended with an error.
    static func needsAttention(_ job: JSON) -> Bool {
        ["itemsWaiting", "itemsFailed", "itemsTimedOut"].contains { (job.integer($0) ?? 0) > 0 }
    }

    private static func isFinished(_ job: JSON) -> Bool {
        job.text("state").flatMap(JobState.init(rawValue:))?.isFinished ?? false
    }

    /// The error of a job or of an item with its code; nil: none.
    static func cause(of document: JSON) -> String? {
        guard let error = document["error"], let code = error.text("code") else { return nil }
        return "\(code): \(error.text("message") ?? "")"
    }

    /// For example `1 of 3 items succeeded, 1 failed, 1 timed out`.
    static func items(of job: JSON) -> String {
        func count(_ key: String, _ word: String) -> String? {
            guard let number = job.integer(key), number > 0 else { return nil }
            return "\(FigureText.count(number)) \(word)"
        }
        let total = FigureText.count(job.integer("itemsTotal") ?? 0, "item")
        let others = [
            isFinished(job) ? nil : count("itemsWaiting", "waiting"), count("itemsFailed", "failed"),
            count("itemsTimedOut", "timed out"), count("itemsCancelled", "cancelled"),
            isFinished(job) ? nil : count("itemsUnknown", "of unknown size"),
        ]
        let done = "\(FigureText.count(job.integer("itemsDone") ?? 0)) of \(total) succeeded"
        return ([done] + others.compactMap(\.self)).joined(separator: ", ")
    }

    /// For example `2.0 MiB of 3.0 MiB, 1.5 MiB from the cache and 512 KiB from the upstream`.
    static func bytes(of job: JSON) -> String {
        let whole = job.integer("bytesTotal").map { " of " + FigureText.bytes($0) } ?? ""
        let sources = ["bytesFromCache", "bytesFromUpstream"].map { FigureText.bytes(job.integer($0) ?? 0) }
        return "\(FigureText.bytes(job.integer("bytesDone") ?? 0))\(whole), \(sources[0]) from the cache"
            + " and \(sources[1]) from the upstream"
    }
}

/// The output of `larder jobs`.
struct JobTable {
    private let now: Timestamp
    private var table = TextTable(
        .leading("job"), .leading("state"), .trailing("items"), .trailing("waiting"), .trailing("failed"),
        .trailing("bytes"),
        .trailing("of"), .trailing("rate"), .leading("created"), .leading("label"))
    private(set) var isEmpty = true

    init(at now: Timestamp) { self.now = now }

    /// Adds a job of the API.
    mutating func add(_ job: JSON) {
        isEmpty = false
        let failed = (job.integer("itemsFailed") ?? 0) + (job.integer("itemsTimedOut") ?? 0)
        let waiting = job.integer("itemsWaiting") ?? 0
        let isRunning = job.text("state") == JobState.running.rawValue
        table.add(
            job.text("jobId") ?? "", job.text("state") ?? "",
            "\(job.integer("itemsDone") ?? 0)/\(job.integer("itemsTotal") ?? 0)",
            waiting > 0 ? FigureText.count(waiting) : "", failed > 0 ? FigureText.count(failed) : "",
            FigureText.bytes(job.integer("bytesDone") ?? 0),
            job.integer("bytesTotal").map(FigureText.bytes) ?? "unknown",
            isRunning ? FigureText.rate(job.number("bytesPerSecond") ?? 0) : "",
            job.time("createdAt").map { FigureText.age(now.since($0).inSeconds) } ?? "", job.text("label") ?? "")
    }

    var text: String { table.text }
}

/// Items of a job with their causes of failure.
struct JobItemTable {
    private var table = TextTable(
        .trailing("item"), .leading("state"), .trailing("bytes"), .leading("asset"), .leading("cause"))

    /// Whether the item waits, or ended with an error.
    static func needsAttention(_ item: JSON) -> Bool {
        [JobState.waiting, .failed, .timedOut].contains { $0.rawValue == item.text("state") }
    }

    /// Adds an item of the API.
    mutating func add(_ item: JSON) {
        table.add(
            FigureText.count(item.integer("index") ?? 0), Self.state(of: item),
            FigureText.bytes(item.integer("bytesDone") ?? 0), Self.name(of: item), JobReport.cause(of: item) ?? "")
    }

    var text: String { table.text }

    /// For example `waiting for circuit until 2026-11-27T16:30:00Z`.
    private static func state(of item: JSON) -> String {
        let state = item.text("state") ?? ""
        guard let cause = item.text("waitingFor") else { return state }
        return "\(state) for \(cause)" + (item.text("retryAt").map { " until \($0)" } ?? "")
    }

    /// The asset as in the request: its URL, its mounted path, or its identifier.
    static func name(of item: JSON) -> String {
        if let origin = item.text("origin"), let path = item.text("path") {
            return "/o/\(origin)/\(path.drop { $0 == "/" })"
        }
        return item.text("url") ?? item.text("assetId") ?? ""
    }
}
