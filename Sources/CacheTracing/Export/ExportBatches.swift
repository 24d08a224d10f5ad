import CacheCore

/// The batch in progress, as a pure state machine: the responses of the receiver decide about retries, splits and the
/// fate of its spans (OTLP specification, "OTLP/HTTP Response").
struct ExportBatches {
    /// The next step after a response.
    enum Step: Hashable {
        /// The part is done. `problem` is a sentence for the log; nil if all spans were accepted.
        case done(problem: String?)
        /// The part is sent again after the delay. `isReachable`: the receiver answered.
        case retry(after: Duration, isReachable: Bool, problem: String)
    }

    /// The number of requests for one part, after which it fails.
    static let maxAttempts = 8
    /// The number of single spans in succession that are too large, after which all other parts fail. Otherwise a
    /// receiver without any capacity would get two requests for each span.
    static let maxTooLarge = 8
    /// The longest delay that a receiver can request.
    static let maxRetryAfter = Duration.seconds(300)
    /// Responses that permit a retry ("Retryable Response Codes").
    private static let retryable: Set<Int> = [429, 502, 503, 504]
    /// The number of characters of a receiver's message in the log.
    private static let maxMessageLength = 256

    /// The parts that are not sent yet; the last one is next. Together they have at most one batch of spans.
    private var parts: [ArraySlice<SpanRecord>] = []
    /// The number of requests for the next part that permitted a retry.
    private var attempts = 0
    /// The number of single spans that were too large since the last success.
    private var tooLarge = 0
    /// Spans that the receiver accepted.
    private(set) var exported: Int64 = 0
    /// Spans that the receiver rejected or that could not be sent.
    private(set) var failed: Int64 = 0

    /// Adds a batch.
    mutating func add(_ spans: [SpanRecord]) { if !spans.isEmpty { parts.append(spans[...]) } }

    /// The spans of the next request; nil if all are done.
    var next: ArraySlice<SpanRecord>? { parts.last }

    /// The receiver answered the request for `next`. `random` is a number in 0..<1 for the jitter.
    mutating func received(_ response: OTLPResponse, now: Timestamp, random: Double) -> Step {
        guard let part = parts.last else { return .done(problem: nil) }
        switch response {
        case .failure(let reason):
            return retry(after: nil, isReachable: false, problem: reason, random: random)
        case .response(200..<300, _, let body):
            return accepted(part, body)
        case .response(413, _, _) where part.count > 1:
            parts.removeLast()
            let middle = part.startIndex + part.count / 2
            parts.append(part[middle...])
            parts.append(part[..<middle])
            attempts = 0
            return .done(problem: nil)
        case .response(413, _, _):
            return tooLarge(part)
        case .response(let status, let headers, _) where Self.retryable.contains(status):
            let requested = RetryAfter.wait(in: headers, now: now).map { min($0, Self.maxRetryAfter) }
            return retry(
                after: requested, isReachable: true, problem: "The receiver answered with status \(status).",
                random: random)
        case .response(let status, _, _):
            finish(part, rejected: part.count)
            return .done(problem: "The receiver rejected \(part.count) spans with status \(status).")
        }
    }

    /// Counts all spans that are not sent yet as failed.
    mutating func abandon() {
        while let part = parts.last { finish(part, rejected: part.count) }
    }

    /// A single span that the receiver rejected because of its size.
    private mutating func tooLarge(_ part: ArraySlice<SpanRecord>) -> Step {
        tooLarge += 1
        finish(part, rejected: part.count)
        if tooLarge >= Self.maxTooLarge { abandon() }
        return .done(problem: "The receiver rejected single spans as too large (status 413).")
    }

    /// A full or partial success ("Partial Success"); it is never retried.
    private mutating func accepted(_ part: ArraySlice<SpanRecord>, _ body: [UInt8]) -> Step {
        // A receiver that accepts spans and sends an invalid body has accepted them nevertheless.
        let partial = (try? JSONParser.parse(body))?["partialSuccess"]
        let rejected: Int64 =
            switch partial?["rejectedSpans"] {
            case .integer(let count): count
            case .string(let text): Int64(text) ?? 0
            default: 0
            }
        let count = Int(clamping: min(max(rejected, 0), Int64(part.count)))
        finish(part, rejected: count)
        tooLarge = 0
        guard count > 0 else { return .done(problem: nil) }
        let message = if case .string(let text) = partial?["errorMessage"] { text } else { "" }
        let shown = String(message.prefix(Self.maxMessageLength))
        return .done(problem: "The receiver rejected \(count) of \(part.count) spans: \(shown)")
    }

    /// Retries the part, or fails it after the last attempt. Without `Retry-After`, the delay grows exponentially.
    private mutating func retry(after delay: Duration?, isReachable: Bool, problem: String, random: Double) -> Step {
        let delay = delay ?? Backoff.delay(beforeRetry: attempts, random: random)
        attempts += 1
        guard attempts >= Self.maxAttempts, let part = parts.last else {
            return .retry(after: delay, isReachable: isReachable, problem: problem)
        }
        finish(part, rejected: part.count)
        return .done(problem: problem)
    }

    private mutating func finish(_ part: ArraySlice<SpanRecord>, rejected: Int) {
        parts.removeLast()
        attempts = 0
        exported += Int64(part.count - rejected)
        failed += Int64(rejected)
    }
}
