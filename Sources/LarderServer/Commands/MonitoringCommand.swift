import ArgumentParser

/// `larder monitoring`: prints the alert rules for Prometheus or the dashboard for Grafana.
struct MonitoringCommand: ParsableCommand {
    /// The printed file.
    enum File: String, ExpressibleByArgument, CaseIterable { case rules, dashboard }

    static let configuration = CommandConfiguration(
        commandName: "monitoring", abstract: "Print the alert rules for Prometheus or the dashboard for Grafana.")

    @Argument(help: "`rules` or `dashboard`.")
    var file: File

    func run() {
        switch file {
        case .rules: print(EmbeddedDocument.alertRules, terminator: "")
        case .dashboard: print(EmbeddedDocument.grafanaDashboard, terminator: "")
        }
    }
}
