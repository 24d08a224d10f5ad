import ArgumentParser
import CacheAPI
import CacheCore

/// `larder jobs pause`: stops a job until it is resumed. Fetched bytes stay cached.
struct JobsPauseCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Stop a job until it is resumed. Fetched bytes stay cached.")

    @Argument(help: "Identifier of the job.")
    var job: String

    @OptionGroup var service: ServiceOptions

    var needs: [String] { JobChange.needs }

    var named: NamedObject? { .job(job) }

    func perform(_ client: ServiceClient) throws {
        let document = try JobChange.send(["state": "paused"], to: job, client)
        say(service.json ? document.text : "The job \(job) is paused; `larder jobs resume \(job)` continues it.")
    }
}

/// `larder jobs resume`: continues a paused job.
struct JobsResumeCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "resume", abstract: "Continue a paused job.")

    @Argument(help: "Identifier of the job.")
    var job: String

    @OptionGroup var service: ServiceOptions

    var needs: [String] { JobChange.needs }

    var named: NamedObject? { .job(job) }

    func perform(_ client: ServiceClient) throws {
        let document = try JobChange.send(["state": "queued"], to: job, client)
        say(service.json ? document.text : "The job \(job) continues; `larder jobs \(job)` shows its progress.")
    }
}

/// `larder jobs set`: changes the priority and the limits of an unfinished job.
struct JobsSetCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Change the priority and the limits of an unfinished job.")

    @Argument(help: "Identifier of the job.")
    var job: String

    @Option(name: .long, help: "Priority of the job.")
    var priority: JobPriority?

    @Option(
        name: .long, help: ArgumentHelp("Bytes per second of all items, such as 4MiB, or none.", valueName: "size"))
    var rate: RateOption?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Time when the unfinished job ends, such as 2030-01-31T06:00:00Z, or none.", valueName: "time")
    )
    var deadline: TimeOption?

    @OptionGroup var service: ServiceOptions

    var needs: [String] { JobChange.needs }

    var named: NamedObject? { .job(job) }

    func validate() throws {
        guard body != .object([]) else { throw ValidationError("Name a change: --priority, --rate or --deadline.") }
    }

    func perform(_ client: ServiceClient) throws {
        let document = try JobChange.send(body, to: job, client)
        say(service.json ? document.text : JobReport(document.value, at: SystemWallClock().now()).text)
    }

    /// The body of the request: `JobPatch` of the API.
    var body: JSON {
        JSON(present: [
            "priority": priority.map { .string($0.rawValue) }, "maxBytesPerSecond": rate?.json,
            "deadlineAt": deadline?.json,
        ])
    }
}

/// The request of all commands that change a job.
private enum JobChange {
    static let needs = ["PATCH /v1/jobs/{jobId}"]

    static func send(_ body: JSON, to job: String, _ client: ServiceClient) throws -> APIDocument<JobDocument> {
        try client.document(ServiceRequest(.patch, "/v1/jobs/" + PercentEncoding.encoded(job), body: body))
    }
}

/// A new rate limit of a job on the command line, such as `4MiB` per second, or `none`.
struct RateOption: ExpressibleByArgument, Sendable {
    let json: JSON

    init?(argument: String) {
        // ArgumentParser reports an invalid text.
        guard let json = argument == "none" ? .null : (try? ByteSize.parse(argument)).map(JSON.integer) else {
            return nil
        }
        self.json = json
    }
}

/// A new instant of a job on the command line, such as `2030-01-31T06:00:00Z`, or `none`.
struct TimeOption: ExpressibleByArgument, Sendable {
    let json: JSON

    init?(argument: String) {
        guard let json = argument == "none" ? .null : RFC3339.parse(argument).map({ JSON.string($0.description) })
        else {
            return nil
        }
        self.json = json
    }
}
