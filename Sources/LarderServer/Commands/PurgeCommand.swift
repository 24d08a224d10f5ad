import ArgumentParser
import CacheCore

/// `larder purge`: plans a purge on a running service, shows it, and carries it out after a confirmation.
///
/// Exit status 1 if the user declines or the call fails.
struct PurgeCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "purge", abstract: "Purge assets from a running service.",
        discussion: """
            An asset is purged if it meets all conditions. The command shows the assets, asks for a confirmation, and \
            purges exactly these assets, except those that changed meanwhile.
            """)

    @Argument(help: ArgumentHelp("Upstream URLs of the assets.", valueName: "asset-url"))
    var urls: [String] = []

    @Option(name: .long, help: "Only assets of this origin.")
    var origin: String?

    @Option(name: .long, help: "Only assets with keys that begin so.")
    var prefix: String?

    @Option(name: .long, help: "Only assets with this tag.")
    var tag: String?

    @Flag(name: .long, help: "Mark the assets as stale instead of removing them.")
    var soft = false

    @Flag(name: .long, help: "Delete the keys of encrypted assets first, cut running responses, and print a receipt.")
    var shred = false

    @Flag(name: .long, help: "Only show the assets.")
    var dryRun = false

    @Flag(name: .long, help: "Purge without a confirmation.")
    var yes = false

    @OptionGroup var service: ServiceOptions

    var needs: [String] {
        let plan = "/v1/purges/{planId}"
        return ["POST /v1/purges"] + (service.json && dryRun ? [] : ["GET \(plan)"])
            + (dryRun ? [] : ["DELETE \(plan)", "POST \(plan)/commit"])
    }

    /// Number of keys that are shown.
    private static let shownKeys = 10

    func validate() throws {
        guard !urls.isEmpty || origin != nil || prefix != nil || tag != nil else {
            throw ValidationError("Select the assets: URLs, --origin, --prefix or --tag.")
        }
        guard !soft || !shred else { throw ValidationError("--soft and --shred exclude each other.") }
        guard !dryRun || !yes else { throw ValidationError("--dry-run and --yes exclude each other.") }
    }

    func perform(_ client: ServiceClient) throws {
        let canAsk = Terminal.input.isInteractive && Terminal.error.isInteractive
        guard dryRun || yes || canAsk else {
            throw ValidationError("The confirmation requires a terminal; pass --yes, or --dry-run.")
        }
        let report = try client.document(ServiceRequest(.post, "/v1/purges", body: body))
        guard let plan = report.json.text("planId"), let assets = report.json.integer("assets") else {
            throw ClientError.malformed(from: "\(client.address)")
        }
        let path = "/v1/purges/" + ServiceRequest.encoded(plan)
        if service.json { say(report.text) } else { try show(report.json, client.document(.init(.get, path)).json) }
        guard !dryRun, assets > 0 else { return }
        guard yes || isConfirmed(assets) else {
            try client.send(ServiceRequest(.delete, path))
            StandardError.write("Nothing was purged.\n")
            throw ExitCode(1)
        }
        try commit(path, client)
    }

    /// The body of the request: `PurgeRequest` of the API.
    var body: JSON {
        JSON(present: [
            "origin": origin.map(JSON.string), "prefix": prefix.map(JSON.string), "tag": tag.map(JSON.string),
            "urls": urls.isEmpty ? nil : .array(urls.map(JSON.string)), "soft": .bool(soft), "dryRun": .bool(true),
            "shred": shred ? .bool(true) : nil,
        ])
    }

    /// Prints the assets of the plan. The report of a soft purge has no bytes; the plan has.
    private func show(_ report: JSON, _ plan: JSON) {
        let assets = report.integer("assets") ?? 0
        guard assets > 0 else { return say("No assets match.") }
        var table = TextTable(.trailing("bytes"), .leading("key"))
        for entry in report.list("entries").prefix(Self.shownKeys) {
            table.add(FigureText.bytes(entry.integer("bytes") ?? 0), entry.text("key") ?? "")
        }
        let others = assets - Int64(min(Self.shownKeys, report.list("entries").count))
        if others > 0 { table.add("", "and \(FigureText.count(others)) more") }
        say(table.text)
        let pinned = report.integer("pinnedAssets") ?? 0
        let bytes = FigureText.bytes(plan.integer("bytes") ?? 0)
        say(
            "\(FigureText.count(assets, "asset")), \(bytes)"
                + (pinned > 0 ? ", \(FigureText.count(pinned)) pinned" : ""))
    }

    private func isConfirmed(_ assets: Int64) -> Bool {
        let noun = FigureText.count(assets, "asset")
        StandardError.write(soft ? "Mark \(noun) as stale? [y/N] " : "Purge \(noun)? [y/N] ")
        return ["y", "yes"].contains(FieldText.lowered(readLine() ?? ""))
    }

    /// The pause between two requests for the progress of a purge in the background.
    private static let pause = Duration.milliseconds(250)

    /// Carries the plan out and prints the result. The response arrives at the end of a small purge, however long that
    /// takes, and when a large one has taken effect. Then the command waits until its assets are deleted.
    private func commit(_ path: String, _ client: ServiceClient) throws {
        var request = ServiceRequest(.post, path + "/commit")
        request.timeout = nil
        Interruption.catchSignals()
        var plan: APIDocument
        do {
            plan = try client.document(request)
            while plan.json.text("state") == "running" {
                try Interruption.pause(for: Self.pause)
                plan = try client.document(ServiceRequest(.get, path))
            }
        } catch let error as ClientError where error.kind == .interrupted {
            StandardError.write("The purge continues on the service: GET \(path) reports its progress.\n")
            throw error
        }
        say(service.json ? plan.text : result(plan.json))
        guard plan.json.text("state") == "done" else { throw ExitCode(1) }
    }

    private func result(_ plan: JSON) -> String {
        let done = FigureText.count(plan.integer("assetsDone") ?? 0, "asset")
        let changed = plan.integer("assetsChanged") ?? 0
        let freed = soft ? "" : ", freed \(FigureText.bytes(plan.integer("freedBytes") ?? 0))"
        return (soft ? "Marked \(done) as stale" : "Purged \(done)\(freed)")
            + (changed > 0 ? "; \(FigureText.count(changed)) changed meanwhile" : "")
            + (plan.text("state") == "done" ? "." : "; the purge was stopped.")
    }
}
