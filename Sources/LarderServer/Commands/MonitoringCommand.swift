import ArgumentParser

/// `larder monitoring`: prints the alert rules for Prometheus or the dashboard for Grafana.
struct MonitoringCommand: ParsableCommand {
    /// The printed file.
    enum File: String, ExpressibleByArgument, CaseIterable { case rules, dashboard }

    static let configuration = CommandConfiguration(
        commandName: "monitoring", abstract: "Print the alert rules for Prometheus or the dashboard for Grafana.")

    @Argument(help: "`rules` or `dashboard`.")
    var file: File

    @Option(
        name: .long,
        help: ArgumentHelp(
            "URL of your copy of the documentation, for the links of the rules.", valueName: "url"))
    var runbooks: String?

    /// The beginning of the links in `monitoring/larder.rules.yaml`.
    private static let placeholder = "https://larder.example/docs/"

    func validate() throws {
        guard let runbooks else { return }
        let isURL = runbooks.hasPrefix("https://") || runbooks.hasPrefix("http://")
        // The link is a plain text of YAML, and an annotation with templates.
        guard isURL, !runbooks.contains(where: { " \t\n\"'{}#".contains($0) }) else {
            throw ValidationError("--runbooks must be an http or https URL without a fragment.")
        }
    }

    func run() {
        switch file {
        case .rules: print(rules, terminator: "")
        case .dashboard: print(EmbeddedDocument.grafanaDashboard, terminator: "")
        }
    }

    private var rules: String {
        guard var base = runbooks else { return EmbeddedDocument.alertRules }
        while base.hasSuffix("/") { base.removeLast() }
        return EmbeddedDocument.alertRules.replacing(Self.placeholder, with: base + "/")
    }
}
