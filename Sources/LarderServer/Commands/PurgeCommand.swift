import ArgumentParser
import CacheAPI
import CacheCore

/// `larder purge`: plans a purge on a running service, shows it, and carries it out after a confirmation.
///
/// Exit status 1 if no asset matches, the user declines or the call fails.
struct PurgeCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "purge", abstract: "Purge assets from a running service.",
        discussion: """
            An asset is purged if it meets all conditions. The command shows the assets, asks for a confirmation, and \
            purges exactly these assets, except those that changed meanwhile. If no asset matches, the exit status is 1 and \
            the probable reason is printed on standard error.
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

    @Flag(name: .shortAndLong, help: "Purge without a confirmation.")
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
        let report: APIDocument<EvictionReportDocument> = try client.document(
            ServiceRequest(.post, "/v1/purges", body: body))
        let assets = report.value.assets
        guard let plan = report.value.planId else { throw ClientError.malformed(from: "\(client.address)") }
        let path = "/v1/purges/" + PercentEncoding.encoded(plan)
        if service.json { say(report.text) } else { try show(report.value, client.document(.init(.get, path)).value) }
        guard assets > 0 else {
            if !service.json, let hint = report.value.hint { StandardError.write(hint + "\n") }
            throw ExitCode(1)
        }
        guard !dryRun else { return }
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
    private func show(_ report: EvictionReportDocument, _ plan: PurgePlanDocument) {
        let assets = report.assets
        guard assets > 0 else { return say("No assets match.") }
        var table = TextTable(.trailing("bytes"), .leading("key"))
        for entry in report.entries.prefix(Self.shownKeys) { table.add(FigureText.bytes(entry.bytes), entry.key) }
        let others = assets - min(Self.shownKeys, report.entries.count)
        if others > 0 { table.add("", "and \(FigureText.count(others)) more") }
        say(table.text)
        let (pinned, bytes) = (report.pinnedAssets, FigureText.bytes(plan.bytes))
        say(
            "\(FigureText.count(assets, "asset")), \(bytes)"
                + (pinned > 0 ? ", \(FigureText.count(pinned)) pinned" : ""))
    }

    private func isConfirmed(_ assets: Int) -> Bool {
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
        var plan: APIDocument<PurgePlanDocument>
        do {
            plan = try client.document(request)
            while plan.value.state == "running" {
                try Interruption.pause(for: Self.pause)
                plan = try client.document(ServiceRequest(.get, path))
            }
        } catch let error as ClientError where error.kind == .interrupted {
            StandardError.write("The purge continues on the service: GET \(path) reports its progress.\n")
            throw error
        }
        say(service.json ? plan.text : result(plan.value))
        guard plan.value.state == "done" else { throw ExitCode(1) }
    }

    private func result(_ plan: PurgePlanDocument) -> String {
        let done = FigureText.count(plan.assetsDone, "asset")
        let changed = plan.assetsChanged
        let freed = soft ? "" : ", freed \(FigureText.bytes(plan.freedBytes))"
        return (soft ? "Marked \(done) as stale" : "Purged \(done)\(freed)")
            + (changed > 0 ? "; \(FigureText.count(changed)) changed meanwhile" : "")
            + (plan.state == "done" ? "." : "; the purge was stopped.") + (plan.receipt.map(Self.text) ?? "")
    }

    /// The receipt of an erasure in a few lines; `--json` prints it completely.
    private static func text(_ receipt: ErasureReceiptDocument) -> String {
        let keys = Set(receipt.assets.map(\.masterKey)).sorted().joined(separator: ", ")
        var text =
            "\nErasure \(receipt.sequence): \(FigureText.count(receipt.assets.count, "asset")), master keys: \(keys)."
        if !receipt.logEmptied { text += "\nThe log of the catalog is in use; the service empties it later." }
        if !receipt.copies.isEmpty { text += "\nDelete: \(receipt.copies.joined(separator: ", "))" }
        return text
    }
}
