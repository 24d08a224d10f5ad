import ArgumentParser
import CacheCore

/// `larder stats`: shows the counters of a running service, or with `--watch` its traffic in each second.
struct StatsCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Show the statistics of a running service.",
        discussion: "With --watch the terminal shows the traffic of each second until Ctrl-C. "
            + "Without a terminal, each second is a line.")

    @Flag(name: .shortAndLong, help: "Show the traffic of each second until Ctrl-C.")
    var watch = false

    @OptionGroup var service: ServiceOptions

    var needs: [String] { [watch ? "GET /v1/stats/live" : "GET /v1/stats"] }

    func perform(_ client: ServiceClient) throws {
        guard watch else {
            let stats: APIDocument<FigureValues> = try client.document(ServiceRequest(.get, "/v1/stats"))
            return say(service.json ? stats.text : StatisticsReport(stats.value).text)
        }
        Interruption.catchSignals()
        do {
            try TrafficWatch(client, printsEvents: service.json).run()
        } catch let error as ClientError where error.kind == .interrupted {
            return  // Ctrl-C is the usual end
        }
    }
}
