import ArgumentParser

/// `larder healthcheck`: asks a running service whether it is ready; for container engines, which have no HTTP client.
struct HealthcheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "healthcheck", abstract: "Ask a running service whether it is ready: exit 0 or 1.",
        discussion: """
            Asks the address that the settings name, or --url. With TLS the answer is not read: a port that takes \
            connections is taken for a service that is ready.
            """)

    @OptionGroup var source: SettingsSource

    @Option(name: .long, help: ArgumentHelp("The address of the service.", valueName: "host:port"))
    var listen: String?

    @Option(name: .long, help: ArgumentHelp("Where to ask (plain http).", valueName: "url"))
    var url: String?

    func run() throws {
        let question = try question()
        do {
            let status = try question.ask(within: .seconds(4))
            guard status == 200 else { throw HealthQuestion.Refusal("answered \(status)") }
        } catch let refusal as HealthQuestion.Refusal {
            StandardError.write("larder: \(question.address) \(refusal.reason)\n")
            throw ExitCode(1)
        }
    }

    private func question() throws -> HealthQuestion {
        if let url {
            guard let question = HealthQuestion(url: url) else {
                throw ValidationError("\"\(url)\" is not a URL of the form http://host:port/path")
            }
            return question
        }
        let listen = try source.settingsOrExit(flags: [("listen.address", listen)]).listen
        return HealthQuestion(
            address: listen.address.dialable, path: "/health/ready", isEncrypted: listen.certificateFile != nil)
    }
}
