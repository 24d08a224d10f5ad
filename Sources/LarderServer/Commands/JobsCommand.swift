import ArgumentParser
import CacheAPI
import CacheCore

/// `larder jobs`: lists, shows, changes, cancels and retries the prefetch jobs of a running service.
struct JobsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "jobs", abstract: "List, show, change, cancel and retry the jobs of a running service.",
        subcommands: [
            JobsListCommand.self, JobsPauseCommand.self, JobsResumeCommand.self, JobsSetCommand.self,
            JobsCancelCommand.self, JobsRetryCommand.self,
        ],
        defaultSubcommand: JobsListCommand.self)
}

/// `larder jobs [list]`: lists the jobs, or shows one with its waiting and failed items.
struct JobsListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the jobs, newest first, or show one job; this is the default.")

    @Argument(help: "Identifier of the job to show with its waiting and failed items.")
    var job: String?

    @Option(name: .long, help: "Only jobs in this state.")
    var state: JobState?

    @Option(name: .shortAndLong, help: "Only jobs with this label.")
    var label: String?

    @OptionGroup var options: ListOptions

    @Flag(name: .long, help: "Show all items of the job.")
    var items = false

    @OptionGroup var service: ServiceOptions

    var needs: [String] { job == nil ? ["GET /v1/jobs"] : ["GET /v1/jobs/{jobId}", "GET /v1/jobs/{jobId}/items"] }

    var named: NamedObject? { job.map { .job($0, or: UsageError.names(below: JobsCommand.self)) } }

    func validate() throws {
        guard job == nil || (state == nil && label == nil) else {
            throw ValidationError("--state and --label select jobs of the list; leave them out to show one job.")
        }
        guard job != nil || !items else { throw ValidationError("--items requires the identifier of a job.") }
    }

    func perform(_ client: ServiceClient) throws {
        if let job { return try show(job, client) }
        let query: [(String, String?)] = [("state", state?.rawValue), ("label", label)]
        try list(
            "/v1/jobs", query: query, options, client, as: ListOutput<JobDocument>.jobs(at: SystemWallClock().now()))
    }

    /// In JSON the document of the job and, with `--items`, the pages of its items.
    private func show(_ job: String, _ client: ServiceClient) throws {
        let path = "/v1/jobs/" + PercentEncoding.encoded(job)
        let document: APIDocument<JobDocument> = try client.document(ServiceRequest(.get, path))
        say(service.json ? document.text : JobReport(document.value, at: SystemWallClock().now()).text)
        guard items || !service.json && JobReport.needsAttention(document.value) else { return }
        if !service.json { say("") }
        var table = JobItemTable()
        _ = try client.pages(path + "/items", of: JobItemDocument.self, limit: .max) { page in
            if service.json { return say(page.text) }
            for item in page.value.items where items || JobItemTable.needsAttention(item) { table.add(item) }
            if let lines = table.takeLines() { say(lines) }
        }
    }
}

/// `larder jobs cancel`: cancels a job. Fetched bytes stay cached.
struct JobsCancelCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Cancel a job. Fetched bytes stay cached.")

    @Argument(help: "Identifier of the job.")
    var job: String

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["DELETE /v1/jobs/{jobId}"] }

    var named: NamedObject? { .job(job) }

    func perform(_ client: ServiceClient) throws {
        let path = "/v1/jobs/" + PercentEncoding.encoded(job)
        let document: APIDocument<JobDocument> = try client.document(ServiceRequest(.delete, path))
        if service.json { say(document.text) }
        let (isEnded, outcome) = (JobReport.isFinished(document.value), JobReport.outcome(of: document.value))
        guard !isEnded || document.value.state == JobState.cancelled.rawValue else {
            throw ClientError(
                .unchanged, "The job \(job) has ended before, in the state \(document.value.state): \(outcome).")
        }
        guard !service.json else { return }
        say("The job \(job) is \(isEnded ? "cancelled" : "being cancelled"). \(outcome).")
    }
}

/// `larder jobs retry`: restarts the items of a job that did not succeed.
struct JobsRetryCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Restart the items of a job that did not succeed.")

    @Argument(help: "Identifier of the job.")
    var job: String

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["GET /v1/jobs/{jobId}", "POST /v1/jobs/{jobId}/retry"] }

    var named: NamedObject? { .job(job) }

    func perform(_ client: ServiceClient) throws {
        let path = "/v1/jobs/" + PercentEncoding.encoded(job)
        let present: APIDocument<JobDocument> = try client.document(ServiceRequest(.get, path))
        guard present.value.state != JobState.succeeded.rawValue else {
            if service.json { say(present.text) }
            throw ClientError(
                .unchanged, "The job \(job) has no items to restart: \(JobReport.outcome(of: present.value)).")
        }
        let document: APIDocument<JobDocument> = try client.document(ServiceRequest(.post, path + "/retry"))
        say(service.json ? document.text : "The job \(job) was restarted; `larder jobs \(job)` shows its progress.")
    }
}

extension JobState: ExpressibleByArgument {
    public static var allValueStrings: [String] { ofJobs.map(\.rawValue) }

    public init?(argument: String) {
        guard let state = Self.ofJobs.first(where: { $0.rawValue == argument }) else { return nil }
        self = state
    }
}
extension JobPriority: ExpressibleByArgument {}
