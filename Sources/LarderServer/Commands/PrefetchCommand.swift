import ArgumentParser
import CacheAPI
import CacheCore

/// `larder prefetch`: creates a prefetch job on a running service, and waits for its end on request.
///
/// Exit status 0: the job was created, and succeeded if it was awaited. 1: it did not. 130: the wait was interrupted.
struct PrefetchCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "prefetch", abstract: "Prefetch assets with a job on a running service.",
        discussion: """
            The assets are URLs, or paths below an origin. With --wait the exit status is 0 only if the job succeeds, and \
            failed items are reported on standard error. An interrupted wait (Ctrl-C) does not end the job. With --list the \
            paths are folders, with a slash at their ends, or documents that name files. With --from-file the assets are the \
            lines of a file: URLs, paths below --origin, or items of the API as JSON.
            """)

    @Argument(help: ArgumentHelp("URLs of assets.", valueName: "asset-url"))
    var urls: [String] = []

    @Option(name: .long, help: "Origin of the paths.")
    var origin: String?

    @Option(name: .long, help: "Path below the origin; repeatable.")
    var path: [String] = []

    @Option(
        name: [.customShort("f"), .long],
        help: ArgumentHelp(
            "File with an asset on each line, at most 100,000; - reads standard input.", valueName: "file"),
        completion: .file())
    var fromFile: String?

    @Option(
        name: .long, help: ArgumentHelp("Range to fetch, for example bytes=0-1048575; repeatable.", valueName: "range"))
    var range: [String] = []

    @Option(name: .long, help: ArgumentHelp("Make this time playable, for example 10s.", valueName: "duration"))
    var play: PlayDuration?

    @Option(name: .long, help: ArgumentHelp("Start of the playable time, for example 60s.", valueName: "duration"))
    var start: PlayDuration?

    @Option(name: .long, help: "Priority of the job.")
    var priority: JobPriority = .normal

    @Option(name: .shortAndLong, help: "Text to find the job with.")
    var label: String?

    @Option(
        name: .long, help: ArgumentHelp("Bytes per second of all items, such as 4MiB, or none.", valueName: "size"))
    var rate: RateOption?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Time when the unfinished job ends, such as 2030-01-31T06:00:00Z, or none.", valueName: "time")
    )
    var deadline: TimeOption?

    @Option(
        name: .long,
        help: ArgumentHelp("Time before which no item starts, such as 2030-01-31T00:00:00Z.", valueName: "time"))
    var notBefore: TimeOption?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Daily time when items run, such as '01:00-06:00 Europe/Berlin'; repeatable.", valueName: "window"))
    var window: [String] = []

    @Flag(name: .long, help: "Fetch the files of folders and documents.")
    var list = false

    @Flag(name: .shortAndLong, help: "With --list: fetch the files of the folders below, too.")
    var recursive = false

    @Option(
        name: .long,
        help: ArgumentHelp("With --list: only files like this, such as '**/*.mp4'; repeatable.", valueName: "pattern"))
    var include: [String] = []

    @Flag(name: .long, help: "Follow live playlists until their end.")
    var live = false

    @Flag(name: .long, help: "Only show the files that the job would fetch.")
    var dryRun = false

    @Flag(name: .long, help: "Wait for the end of the job, and show its progress.")
    var wait = false

    @Flag(name: .shortAndLong, help: "Print only the identifier of the job, and no progress.")
    var quiet = false

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["POST /v1/jobs"] + (wait ? ["GET /v1/jobs/{jobId}/events"] : []) }

    var named: NamedObject? { origin.map { .origin($0) } }

    func validate() throws {
        guard fromFile == nil || urls.isEmpty && path.isEmpty else {
            throw ValidationError("--from-file replaces URLs and --path; remove them.")
        }
        guard (origin == nil) == path.isEmpty || fromFile != nil else {
            throw ValidationError("--origin and --path require each other.")
        }
        guard !urls.isEmpty || !path.isEmpty || fromFile != nil else {
            throw ValidationError("Name the assets: URLs, --origin and --path, or --from-file.")
        }
        guard !live || play == nil && range.isEmpty && !list else {
            throw ValidationError("--live excludes --play, --range and --list.")
        }
        guard play != nil || start == nil else { throw ValidationError("--start requires --play.") }
        guard play == nil || range.isEmpty else { throw ValidationError("--play and --range exclude each other.") }
        guard play?.duration != .zero else { throw ValidationError("--play must be longer than 0 s.") }
        guard list || !recursive && include.isEmpty else {
            throw ValidationError("--recursive and --include require --list.")
        }
        guard !list || range.isEmpty else { throw ValidationError("--list and --range exclude each other.") }
        guard !dryRun || !wait else { throw ValidationError("--dry-run and --wait exclude each other.") }
    }

    func perform(_ client: ServiceClient) throws {
        var (request, count) = (ServiceRequest(.post, "/v1/jobs", body: body), urls.count + path.count)
        if let fromFile { (request, count) = try self.request(linesOf: fromFile) }
        guard !dryRun else { return try show(client.document(request)) }
        let job: APIDocument<JobDocument>
        do { job = try client.document(request) } catch let error as ClientError where fromFile != nil {
            throw JobLinesText.renumbered(error)
        }
        let identifier = job.value.jobId
        if service.json {
            say(job.text)
        } else if quiet {
            say(identifier)
        } else {
            let hint = wait ? "" : "; `larder jobs \(identifier)` shows its progress"
            say(
                "Created the job \(identifier) with \(FigureText.count(count, "item"))\(hint)."
            )
        }
        if wait {
            try JobWatch(of: identifier, client, output: service.json ? .events : quiet ? .silent : .progress).run()
        }
    }

    /// Prints the files that the job would fetch.
    private func show(_ plan: APIDocument<JobPlanDocument>) {
        guard !service.json else { return say(plan.text) }
        let (found, shown) = (plan.value, plan.value.entries.count)
        guard found.files > 0 else { return say("The job would fetch no files.") }
        var table = TextTable(.trailing("bytes"), .leading("file"))
        for entry in found.entries {
            let name = entry.url.value ?? entry.origin.value.map { "\($0) \(entry.path.value ?? "")" }
            table.add(entry.bytes.map(FigureText.bytes) ?? "unknown", name ?? entry.assetId?.description ?? "")
        }
        if found.files > shown { table.add("", "and \(FigureText.count(found.files - shown)) more") }
        say(table.text)
        let (unknown, skipped) = (found.filesOfUnknownLength, found.skippedEntries)
        say(
            "\(FigureText.count(found.files, "file")), \(FigureText.bytes(found.bytes))"
                + (unknown > 0 ? " and \(FigureText.count(unknown)) of unknown length" : "")
                + (skipped > 0 ? "; \(FigureText.count(skipped)) entries lie elsewhere" : ""))
    }

    /// The request with the lines of a file, and the number of its items.
    private func request(linesOf file: String) throws -> (ServiceRequest, Int) {
        let text = try JobLinesText(reading: file, origin: origin, shared: shared, job: job)
        var request = ServiceRequest(.post, "/v1/jobs")
        (request.body, request.mediaType, request.timeout) = (text.body, "application/x-ndjson", .seconds(600))
        return (request, text.count)
    }

    /// The members of each item beside the name of its asset.
    private var shared: [JSON.Member] {
        var shared: [JSON.Member] = []
        if !range.isEmpty { shared.append(.init("ranges", .array(range.map(JSON.string)))) }
        if let play {
            let from = start.map { JSON.seconds($0.duration) }
            shared.append(.init("play", JSON(present: ["startSeconds": from, "seconds": .seconds(play.duration)])))
        }
        if list {
            let patterns = include.isEmpty ? nil : JSON.array(include.map(JSON.string))
            let selection = JSON(present: ["recursive": recursive ? .bool(true) : nil, "include": patterns])
            shared.append(.init("list", selection))
        }
        if live { shared.append(.init("live", .bool(true))) }
        return shared
    }

    /// The members of the job beside its items.
    private var job: [JSON.Member] {
        let job = JSON(present: [
            "priority": .string(priority.rawValue), "label": label.map(JSON.string),
            "maxBytesPerSecond": rate?.json, "deadlineAt": deadline?.json,
            "notBefore": notBefore?.json, "windows": window.isEmpty ? nil : .array(window.map(JSON.string)),
            "dryRun": dryRun ? .bool(true) : nil,
        ])
        guard case .object(let members) = job else { return [] }
        return members
    }

    /// The body of the request: `CreateJobRequest` of the API.
    var body: JSON {
        let mounted = path.map { path -> [JSON.Member] in
            [.init("origin", .string(origin ?? "")), .init("path", .string(path))]
        }
        let items = (urls.map { [.init("url", .string($0))] } + mounted).map { JSON.object($0 + shared) }
        return .object([.init("items", .array(items))] + job)
    }
}

/// A duration on the command line, such as `10s`, `1500ms` or `2m`.
struct PlayDuration: ExpressibleByArgument, Sendable {
    let duration: Duration

    init?(argument: String) {
        guard let duration = try? DurationText.parse(argument) else { return nil }  // ArgumentParser reports it
        self.duration = duration
    }
}
