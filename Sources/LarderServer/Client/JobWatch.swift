import ArgumentParser
import CacheCore

/// Waits for the end of a job over its event stream, and shows the progress on standard error.
final class JobWatch {
    /// The minimum time between two lines without a terminal.
    private static let lineInterval = Duration.seconds(5)

    private let identifier: String
    private let client: ServiceClient
    /// Whether events are printed as JSON instead of the progress.
    private let printsEvents: Bool
    private let meter: ProgressMeter?
    private var lines = Throttle(interval: JobWatch.lineInterval)
    private var last: JSON = [:]

    init(of identifier: String, _ client: ServiceClient, printsEvents: Bool) {
        self.identifier = identifier
        self.client = client
        self.printsEvents = printsEvents
        meter = printsEvents ? nil : ProgressMeter.onTerminal
    }

    private var state: JobState? { last.text("state").flatMap(JobState.init(rawValue:)) }

    private var path: String { "/v1/jobs/" + ServiceRequest.encoded(identifier) }

    /// Blocks until the job has ended, and prints its outcome. Throws `ExitCode(1)` unless it succeeded. If the wait
    /// ends before the job, prints the calls for the job.
    func run() throws {
        Interruption.catchSignals()
        do {
            try client.follow(.events(path + "/events"), onLoss: { notify("\($0.message) Trying again.") }) {
                try self.received($0)
            }
        } catch let error as ClientError where error.kind == .interrupted || error.kind == .unreachable {
            notify(
                "The job \(identifier) continues on the service. Show it: larder jobs \(identifier). "
                    + "Cancel it: larder jobs cancel \(identifier).")
            throw error
        } catch {
            meter?.clear()
            throw error
        }
        meter?.clear()
        try finish()
    }

    /// Shows the job of one event. Stops the stream when the job has ended.
    private func received(_ event: ServerSentEvent) throws -> ResponseCollector.Continuation {
        guard event.type == "state" || event.type == "progress" else { return .proceed }
        // Data that is not JSON is reported as a foreign response.
        guard let job = try? JSONParser.parse(event.data.utf8), let name = job.text("state"),
            let state = JobState(rawValue: name)
        else { throw ClientError.malformed(from: "\(client.address)") }
        last = job
        if printsEvents {
            Terminal.output.write(event.data + "\n")
        } else if let meter {
            meter.show(JobProgress.line(of: job))
        } else if lines.isDue(at: ContinuousClock.now) || event.type == "state" {
            StandardError.write("\(name): \(JobProgress.line(of: job).plain)\n")
        }
        return state.isFinished ? .stop : .proceed
    }

    /// Prints the outcome, and failed items with their causes.
    private func finish() throws {
        // A stream that was lost ends with status 204 if the job has ended meanwhile.
        if state?.isFinished != true { last = try client.document(ServiceRequest(.get, path)).json }
        if JobReport.needsAttention(last) { try reportFailures() }
        if !printsEvents { Terminal.output.write(Self.outcome(of: last)) }
        guard state == .succeeded else { throw ExitCode(1) }
    }

    /// The last lines of the command. The causes of failed items are reported before; then the job has the same cause.
    static func outcome(of job: JSON) -> String {
        let words = ["failed": "failed", "timedOut": "timed out", "cancelled": "was cancelled"]
        let state = job.text("state") ?? ""
        let cause = JobReport.needsAttention(job) ? nil : JobReport.cause(of: job)
        return "The job \(words[state] ?? state): \(JobReport.outcome(of: job)).\n"
            + (cause.map { PrintableText.of($0) + "\n" } ?? "")
    }

    private func reportFailures() throws {
        _ = try client.pages(path + "/items", limit: .max) { page in
            for item in page.json.list("items") where JobItemTable.needsAttention(item) {
                let line = "\(JobItemTable.name(of: item)): \(JobReport.cause(of: item) ?? item.text("state") ?? "")"
                StandardError.write(PrintableText.of(line) + "\n")
            }
        }
    }

    private func notify(_ sentence: String) {
        meter?.clear()
        StandardError.write(PrintableText.of(sentence) + "\n")
    }
}
