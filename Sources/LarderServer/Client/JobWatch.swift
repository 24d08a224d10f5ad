import ArgumentParser
import CacheAPI
import CacheCore

/// Waits for the end of a job over its event stream, and shows the progress on standard error.
final class JobWatch {
    /// The output until the end of the job, beside the causes of failed items.
    enum Output { case progress, events, silent }

    /// The minimum time between two lines without a terminal.
    private static let lineInterval = Duration.seconds(5)

    private let identifier: String
    private let client: ServiceClient
    private let output: Output
    private let meter: ProgressMeter?
    private var lines = Throttle(interval: JobWatch.lineInterval)
    /// Nil before the first event.
    private var last: JobDocument?

    init(of identifier: String, _ client: ServiceClient, output: Output) {
        self.identifier = identifier
        self.client = client
        self.output = output
        meter = output == .progress ? ProgressMeter.onTerminal : nil
    }

    private var state: JobState? { last.flatMap { JobState(rawValue: $0.state) } }

    private var path: String { "/v1/jobs/" + PercentEncoding.encoded(identifier) }

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
        let job: JobDocument = try client.decoded(event.data.utf8)
        last = job
        if output == .events {
            Terminal.output.write(event.data + "\n")
        } else if let meter {
            meter.show(JobProgress.line(of: job))
        } else if output == .progress, event.type == "state" || lines.isDue(at: ContinuousClock.now) {
            StandardError.write("\(job.state): \(JobProgress.line(of: job).plain)\n")
        }
        return state?.isFinished == true ? .stop : .proceed
    }

    /// Prints the outcome, and failed items with their causes.
    private func finish() throws {
        // A stream that was lost ends with status 204 if the job has ended meanwhile.
        var job = last
        if state?.isFinished != true { job = try client.document(ServiceRequest(.get, path)).value }
        guard let job else { throw ExitCode(1) }
        last = job
        if JobReport.needsAttention(job) { try reportFailures() }
        if output == .progress { Terminal.output.write(Self.outcome(of: job)) }
        guard state == .succeeded else { throw ExitCode(1) }
    }

    /// The last lines of the command. The causes of failed items are reported before; then the job has the same cause.
    static func outcome(of job: JobDocument) -> String {
        let words = ["failed": "failed", "timedOut": "timed out", "cancelled": "was cancelled"]
        let cause = JobReport.needsAttention(job) ? nil : job.error?.sentence
        return "The job \(words[job.state] ?? job.state): \(JobReport.outcome(of: job)).\n"
            + (cause.map { PrintableText.of($0) + "\n" } ?? "")
    }

    private func reportFailures() throws {
        _ = try client.pages(path + "/items", of: JobItemDocument.self, limit: .max) { page in
            for item in page.value.items where JobItemTable.needsAttention(item) {
                let line = "\(JobItemTable.name(of: item)): \(item.error?.sentence ?? item.state)"
                StandardError.write(PrintableText.of(line) + "\n")
            }
        }
    }

    private func notify(_ sentence: String) {
        meter?.clear()
        StandardError.write(PrintableText.of(sentence) + "\n")
    }
}
