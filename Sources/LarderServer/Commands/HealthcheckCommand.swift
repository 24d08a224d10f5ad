import ArgumentParser

/// `larder healthcheck`: checks the readiness of a running service. For container images without an HTTP client.
struct HealthcheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "healthcheck", abstract: "Check whether a running service is ready: exit status 0 or 1.",
        discussion: """
            Sends a request to the configured listen address, or to --url. It does not verify the certificate. If the \
            service requires client certificates or the PROXY protocol, it only checks that the service accepts \
            connections.
            """)

    /// Only the listen address and the TLS files are used.
    @OptionGroup var source: SettingsSource

    @Option(name: .long, help: ArgumentHelp("Listen address of the service.", valueName: "address"))
    var listen: String?

    @Option(name: .long, help: ArgumentHelp("URL of the request: http, or unix:/path of a socket.", valueName: "url"))
    var url: String?

    /// Exit status 1 unless the response has status 200 within 4 s.
    func run() throws {
        let question = try question()
        do {
            let status = try question.ask(within: .seconds(4))
            guard status == 200 else { throw HealthProbe.Refusal("returned status \(status)") }
        } catch let refusal as HealthProbe.Refusal {
            StandardError.write("larder: \(question.address) \(refusal.reason)\n")
            throw ExitCode(1)
        }
    }

    /// The probe of `--url`, or of the configured listen address.
    private func question() throws -> HealthProbe {
        if let url {
            guard let question = HealthProbe(url: url) else {
                throw ValidationError("\"\(url)\" does not have the form http://host:port/path or unix:/path")
            }
            return question
        }
        let listen = try source.settingsOrExit(flags: [("listen.address", listen)]).listen
        return HealthProbe(listen, path: "/health/ready")
    }
}
