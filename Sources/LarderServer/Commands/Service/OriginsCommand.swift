import ArgumentParser
import CacheAPI
import CacheCore

/// `larder origins`: lists, shows, tests, changes and deletes the origins of a running service.
struct OriginsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "origins", abstract: "List, show, test, change and delete origins.",
        subcommands: [
            OriginsListCommand.self, OriginsTestCommand.self, OriginsSetCommand.self, OriginsDeleteCommand.self,
        ],
        defaultSubcommand: OriginsListCommand.self)

    static func path(_ name: String) -> String { "/v1/origins/" + PercentEncoding.encoded(name) }
}

/// `larder origins [list]`: lists the origins with the state of their servers, or shows the settings of one.
struct OriginsListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the origins with the state of their servers, or show one; this is the default.")

    @Argument(help: "Name of the origin to show.")
    var name: String?

    @OptionGroup var options: ListOptions
    @OptionGroup var service: ServiceOptions

    var needs: [String] { [name == nil ? "GET /v1/origins" : "GET /v1/origins/{name}"] }

    var named: NamedObject? { name.map { .origin($0, or: UsageError.names(below: OriginsCommand.self)) } }

    func perform(_ client: ServiceClient) throws {
        if let name {
            let origin: APIDocument<JSON> = try client.document(ServiceRequest(.get, OriginsCommand.path(name)))
            return say(service.json ? origin.text : Assignments.table(of: origin.value))
        }
        try list("/v1/origins", isPaged: false, options, client, as: Self.output)
    }

    private static let output = ListOutput<JSON>(
        noun: "origin",
        columns: [
            .leading("name"), .leading("server"), .leading("circuit"), .leading("last failure"), .leading("from"),
        ],
        name: { $0["name"]?.string ?? "" }
    ) { origin in
        guard case .array(let addresses)? = origin["addresses"] else { return [] }
        return addresses.enumerated().map { index, address in
            let failure = address["lastFailure"].flatMap { failure in
                failure["cause"]?.string.map { $0 + (failure["status"].map { $0 == .null ? "" : " \($0.text)" } ?? "") }
            }
            return [
                index == 0 ? origin["name"]?.string ?? "" : "", address["url"]?.string ?? "",
                address["state"]?.string ?? "", failure ?? "none", index == 0 ? origin["from"]?.string ?? "" : "",
            ]
        }
    }
}

/// `larder origins test`: sends one request to the upstream of an origin, or to one with settings that are not mounted.
///
/// Exit status 1 unless the upstream answers with success.
struct OriginsTestCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "test", abstract: "Send a request to the upstream of an origin.",
        discussion: """
            With settings, as for a new origin in `larder origins set`, these are tested and not mounted. Without settings \
            the origin must be mounted. The exit status is 1 unless the upstream answers with success.
            """)

    @Argument(help: "Name of the origin.")
    var name: String

    @Argument(help: ArgumentHelp("Setting; repeatable.", valueName: "name=value"))
    var settings: [String] = []

    @Option(name: .long, help: ArgumentHelp("Path of a file below the origin, such as film.mp4.", valueName: "path"))
    var path: String?

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["POST /v1/origins/{name}/test"] }

    var named: NamedObject? { settings.isEmpty ? .origin(name) : nil }

    func perform(_ client: ServiceClient) throws {
        let body = JSON(present: [
            "settings": settings.isEmpty ? nil : try Assignments.document(settings), "path": path.map(JSON.string),
        ])
        let test: APIDocument<OriginTestDocument> = try client.document(
            ServiceRequest(.post, OriginsCommand.path(name) + "/test", body: body))
        say(service.json ? test.text : Self.text(test.value))
        guard test.value.outcome == "succeeded" else { throw ExitCode(1) }
    }

    private static func text(_ test: OriginTestDocument) -> String {
        var table = TextTable()
        table.add("outcome", [test.outcome, test.code].compactMap(\.self).joined(separator: ", "))
        if let detail = test.detail { table.add("detail", detail) }
        table.add("url", test.finalUrl)
        if let status = test.status { table.add("status", String(status)) }
        table.add("ranges", test.acceptsRanges.map { $0 ? "accepted" : "not accepted" } ?? "unknown")
        if let length = test.contentLength { table.add("length", FigureText.bytes(length)) }
        if let type = test.contentType { table.add("type", type) }
        let times = [("connection", test.timings.connectSeconds), ("first byte", test.timings.firstByteSeconds)]
        for case (let name, let time?) in times { table.add(name, FigureText.latency(time)) }
        return table.text
    }
}

/// `larder origins set`: mounts an origin, or changes some of its settings.
struct OriginsSetCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Mount an origin, or change some of its settings.",
        discussion: """
            Settings have the names of the API, as in `baseURL=https://media.example.com timeouts.idleSeconds=30`. A value is \
            JSON or a text; null restores the default. Values of headers are secrets: use a credentials file, because other \
            users can read command lines.
            """)

    @Argument(help: "Name of the origin.")
    var name: String

    @Argument(help: ArgumentHelp("Setting; repeatable.", valueName: "name=value"))
    var settings: [String]

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["GET /v1/origins", "PUT /v1/origins/{name}", "PATCH /v1/origins/{name}"] }

    func perform(_ client: ServiceClient) throws {
        let change = try Assignments.document(settings)
        let present: PageDocument<JSON> = try client.document(ServiceRequest(.get, "/v1/origins")).value
        let isKnown = present.items.contains { $0["name"] == .string(name) }
        let origin: APIDocument<JSON> = try client.document(
            ServiceRequest(isKnown ? .patch : .put, OriginsCommand.path(name), body: change))
        say(service.json ? origin.text : "The origin \(name) is \(isKnown ? "changed" : "mounted at /o/\(name)/").")
    }
}

/// `larder origins delete`: unmounts an origin. Its cached assets stay until they are evicted.
struct OriginsDeleteCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Unmount an origin. Its cached assets stay until they are evicted.")

    @Argument(help: "Name of the origin.")
    var name: String

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["DELETE /v1/origins/{name}"] }

    var named: NamedObject? { .origin(name) }

    func perform(_ client: ServiceClient) throws {
        try client.send(ServiceRequest(.delete, OriginsCommand.path(name)))
        if !service.json { say("The origin \(name) is unmounted.") }
    }
}
