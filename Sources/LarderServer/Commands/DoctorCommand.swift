import ArgumentParser

/// `larder doctor`: checks the configuration and the machine, also beside a running service.
///
/// Exit status 0: no problems. 1: warnings. 2: errors that prevent a start or reads.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Check the configuration and the machine for problems.",
        discussion: """
            Checks limits, kernel, clock, data directory, disk space, permissions, address, certificates and risky \
            settings. Changes nothing and prints no secret; a service may run. Exit status 0: no problems. 1: warnings. \
            2: errors.
            """)

    @OptionGroup var options: SettingsOptions
    @OptionGroup var output: OutputOptions

    @Flag(name: .long, help: "Send one HEAD request to each configured upstream, with a time limit of 5 s.")
    var online = false

    func run() async throws {
        let input: SettingsInput
        do {
            input = try options.input()
        } catch {
            throw SettingsSource.refusal(error)
        }
        let report = await Doctor(input: input, isOnline: online).examine()
        output.write(report.text, json: report.json)
        if report.exitStatus != 0 { throw ExitCode(report.exitStatus) }
    }
}
