import ArgumentParser
import CacheAPI
import CacheCore
import Foundation

/// `larder schedules`: lists, shows, writes and deletes the schedules of a running service.
struct SchedulesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schedules", abstract: "List, show, write and delete schedules of prefetch jobs.",
        subcommands: [SchedulesListCommand.self, SchedulesSetCommand.self, SchedulesDeleteCommand.self],
        defaultSubcommand: SchedulesListCommand.self)

    static func path(_ name: String) -> String { "/v1/schedules/" + PercentEncoding.encoded(name) }
}

/// `larder schedules [list]`: lists the schedules, or shows one.
struct SchedulesListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the schedules, or show one; this is the default.")

    @Argument(help: "Name of the schedule to show.")
    var name: String?

    @OptionGroup var options: ListOptions
    @OptionGroup var service: ServiceOptions

    var needs: [String] { [name == nil ? "GET /v1/schedules" : "GET /v1/schedules/{name}"] }

    var named: NamedObject? { name.map { .schedule($0, or: UsageError.names(below: SchedulesCommand.self)) } }

    func perform(_ client: ServiceClient) throws {
        if let name {
            let schedule: APIDocument<ScheduleDocument> = try client.document(
                ServiceRequest(.get, SchedulesCommand.path(name)))
            return say(service.json ? schedule.text : ScheduleReport.text(schedule.value))
        }
        try list("/v1/schedules", isPaged: false, options, client, as: Self.output)
    }

    private static let output = ListOutput<ScheduleDocument>(
        noun: "schedule",
        columns: [
            .leading("name"), .leading("repeat"), .leading("state"), .leading("next run"), .leading("last run"),
            .leading("result"),
        ],
        name: \.name
    ) { schedule in
        [
            [
                schedule.name, ScheduleReport.times(schedule), schedule.state,
                schedule.nextRunAt.map(RFC3339.format) ?? "none",
                schedule.lastRun.map { RFC3339.format($0.startedAt) } ?? "none", schedule.lastRun?.result ?? "",
            ]
        ]
    }
}

/// `larder schedules set`: creates or replaces a schedule.
struct SchedulesSetCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "set", abstract: "Create or replace a schedule.")

    @Argument(help: "Name of the schedule.")
    var name: String

    @Argument(help: "File with the job as for POST /v1/jobs; - is standard input.")
    var file: String

    @Option(name: .long, help: "daily, weekly:mon,thu or every:6h.")
    var `repeat`: String

    @Option(
        name: .long,
        help: ArgumentHelp("Time of day and zone, such as '02:30 Europe/Berlin'.", valueName: "time"))
    var at: String?

    @Option(
        name: .long,
        help: ArgumentHelp("Time from its start to the deadline of each job, such as 3h.", valueName: "time"))
    var deadline: String?

    @Flag(name: .long, help: "Start no jobs.")
    var disabled = false

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["PUT /v1/schedules/{name}"] }

    func validate() throws {
        guard let deadline else { return }
        do throws(CacheError) { _ = try DurationText.parse(deadline, field: "--deadline") } catch {
            throw ValidationError(error.message)
        }
    }

    func perform(_ client: ServiceClient) throws {
        let seconds = try deadline.map { JSON.seconds(try DurationText.parse($0)) }
        let body = JSON(present: [
            "repeat": .string(`repeat`), "at": at.map(JSON.string), "enabled": .bool(!disabled),
            "deadlineSeconds": seconds, "job": try job(),
        ])
        let schedule: APIDocument<ScheduleDocument> = try client.document(
            ServiceRequest(.put, SchedulesCommand.path(name), body: body))
        say(service.json ? schedule.text : ScheduleReport.text(schedule.value))
    }

    private func job() throws -> JSON {
        do {
            let bytes =
                file == "-"
                ? try FileHandle.standardInput.readToEnd() ?? Data() : try Data(contentsOf: URL(fileURLWithPath: file))
            return try JSONParser.parse(bytes)
        } catch let error as CacheError {
            throw ValidationError("The file \(file) is no JSON document. \(error.message)")
        } catch {
            throw ValidationError("The file \(file) cannot be read.")
        }
    }
}

/// `larder schedules delete`: deletes a schedule. Jobs that it has started go on.
struct SchedulesDeleteCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete a schedule. Jobs that it has started go on.")

    @Argument(help: "Name of the schedule.")
    var name: String

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["DELETE /v1/schedules/{name}"] }

    var named: NamedObject? { .schedule(name) }

    func perform(_ client: ServiceClient) throws {
        try client.send(ServiceRequest(.delete, SchedulesCommand.path(name)))
        if !service.json { say("The schedule \(name) is deleted.") }
    }
}

/// The text of a schedule.
private enum ScheduleReport {
    static func times(_ schedule: ScheduleDocument) -> String {
        schedule.at.map { "\(schedule.repeat) at \($0)" } ?? schedule.repeat
    }

    static func text(_ schedule: ScheduleDocument) -> String {
        var table = TextTable()
        table.add("name", schedule.name)
        table.add("repeat", times(schedule))
        table.add("state", schedule.state)
        if let reason = schedule.reason { table.add("reason", reason) }
        if let seconds = schedule.deadlineSeconds { table.add("deadline", DurationText.format(.seconds(seconds))) }
        if let owner = schedule.owner { table.add("token", owner) }
        table.add("next run", schedule.nextRunAt.map(RFC3339.format) ?? "none")
        if let run = schedule.lastRun {
            table.add("last run", "\(RFC3339.format(run.startedAt)), \(run.result)")
            if let job = run.jobId { table.add("last job", job) }
            if let error = run.error { table.add("error", error.sentence) }
        }
        return table.text
    }
}
