import CacheCore
import CacheTestKit
import CacheTracing
import Logging
import Synchronization

/// A tracer with manual clocks.
struct TestTracer {
    let clock = ManualClock()
    let wallClock = ManualWallClock()
    let random: SeededChance
    let tracer: Tracer

    init(_ sampler: TraceSampler = TraceSampler(ratio: 1), seed: UInt64 = 1) {
        random = SeededChance(seed: seed)
        tracer = Tracer(sampler: sampler, random: random, wallClock: wallClock, uptime: clock.stopwatch())
    }

    /// Ends `count` spans with the names `span0`, `span1`, …
    func endSpans(_ count: Int, from first: Int = 0) {
        for number in first..<first + count { tracer.span("span\(number)", .internal)?.end() }
    }

    /// An exporter to `receiver`.
    func exporter(
        to receiver: ScriptedReceiver, headers: SecretHeaders = SecretHeaders()
    ) throws -> OTLPExporter? {
        var settings = TracingSettings()
        settings.endpoint = try OTLPEndpoint(url: "https://collector.test/v1/traces?key=hidden", key: "test")
        settings.headers = headers
        return OTLPExporter(
            tracer: tracer, settings: settings, version: "1.2.3", clock: clock, wallClock: wallClock,
            random: random, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, send: receiver.send)
    }
}

/// A receiver that answers requests in the order of its script, and the last response again after its end.
final class ScriptedReceiver: Sendable {
    enum Answer: Sendable {
        case status(Int, HeaderList = HeaderList(), body: String = "{}")
        case failure
        /// No response until the task is cancelled.
        case silence
    }

    private struct State {
        var script: [Answer]
        var requests: [OTLPRequest] = []
    }

    private let state: Mutex<State>

    init(_ script: Answer...) { state = Mutex(State(script: script)) }

    var requests: [OTLPRequest] { state.withLock { $0.requests } }

    /// The names of the spans of each request.
    var names: [[String]] {
        get throws {
            try requests.map { request in
                try JSONParser.parse(request.body).spans.compactMap { span in
                    if case .string(let name) = span["name"] { name } else { nil }
                }
            }
        }
    }

    /// The numbers of spans of the requests.
    var sizes: [Int] { get throws { try names.map(\.count) } }

    func send(_ request: OTLPRequest) async -> OTLPResponse {
        let answer = state.withLock { state in
            state.requests.append(request)
            return state.script.count > 1 ? state.script.removeFirst() : state.script[0]
        }
        switch answer {
        case .status(let status, let headers, let body):
            return .response(status: status, headers: headers, body: Array(body.utf8))
        case .failure: return .failure("The connection was refused.")
        case .silence:
            // Never opened: the wait ends with the cancellation.
            await AsyncEvent().wait()
            return .failure("The request was cancelled.")
        }
    }
}

extension JSON {
    /// The spans of a request with one resource and one scope.
    var spans: [JSON] {
        guard case .array(let resources)? = self["resourceSpans"],
            case .array(let scopes)? = resources.first?["scopeSpans"],
            case .array(let spans)? = scopes.first?["spans"]
        else { return [] }
        return spans
    }
}
