import CacheAPI
import CacheCore

/// Shows the traffic of a service in each second: on a terminal a live screen, else lines.
final class TrafficWatch {
    private static let path = "/v1/stats/live"
    /// Seconds of the past that the first screen shows.
    private static let shownSeconds = 300
    /// Seconds that a lost stream can be behind: the memory of the service.
    private static let resumedSeconds = 900

    private let client: ServiceClient
    /// Whether events are printed as JSON.
    private let printsEvents: Bool
    private var window = TrafficWindow()
    /// A sentence about a lost connection; nil: connected.
    private var notice: String?
    /// Nil without a terminal, and before the first response.
    private var screen: LiveScreen?

    init(_ client: ServiceClient, printsEvents: Bool) {
        self.client = client
        self.printsEvents = printsEvents
    }

    /// Blocks until the user interrupts the command; then throws `ClientError.interrupted`. The terminal is restored in
    /// any case.
    func run() throws {
        defer { screen?.close() }
        let isLive = !printsEvents && Terminal.output.isInteractive
        try readPast(isLive ? Self.shownSeconds : 1)
        var request = ServiceRequest.events("\(Self.path)?windowSeconds=\(Self.resumedSeconds)")
        // The stream begins after the last second that is known.
        if let last = window.seconds.last { request.lastEventID = String(last.at.seconds) }
        if isLive {
            screen = LiveScreen(on: .output)
            draw()
        }
        try client.follow(request, onLoss: { self.lost($0) }) { event in
            try self.received(event)
            return .proceed
        }
    }

    private func readPast(_ count: Int) throws {
        let request = ServiceRequest(.get, Self.path, query: [("windowSeconds", String(count))])
        let past: APIDocument<LiveStatisticsDocument> = try client.document(request)
        for second in past.value.seconds { window.add(second) }
    }

    private func received(_ event: ServerSentEvent) throws {
        guard event.type == "second" else { return }
        notice = nil
        if printsEvents { return Terminal.output.write(event.data + "\n") }
        let second: LiveSecondDocument = try client.decoded(event.data.utf8)
        window.add(second)
        if screen == nil { Terminal.output.write(second.line + "\n") } else { draw() }
    }

    private func lost(_ error: ClientError) {
        notice = PrintableText.of(error.message) + " Trying again."
        if screen == nil { StandardError.write((notice ?? "") + "\n") } else { draw() }
    }

    private func draw() {
        screen?.draw { columns in
            TrafficScreen.lines(window, url: "\(client.address)", notice: notice, columns: columns)
        }
    }
}
