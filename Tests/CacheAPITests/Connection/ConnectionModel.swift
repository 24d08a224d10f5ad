import CacheCore
import NIOCore
import NIOHTTP1

@testable import CacheAPI

/// A connection without a channel: reports events to ``HTTPConnectionState`` as ``HTTPConnectionHandler`` does, and
/// records the actions as words.
///
/// | event | |
/// |---|---|
/// | `bytes` | bytes of a request that is not decoded yet |
/// | `head`, `HEAD`, `old`, `last` | the head of a request without a body: GET, HEAD, HTTP/1.0, with `Connection: close` |
/// | `post`, `part`, `more`, `end` | the head of a request with a body, 1 byte and 1 MiB of it, the end of a request |
/// | `bad`, `eof` | bytes that are no request; the client closes its sending side |
/// | `<head`, `<open`, `<bye` | the head of a response with a length, without one, with `Connection: close` |
/// | `<part`, `<end`, `sent` | the rest of a response is written; everything that is written was sent |
/// | `bypass`, `passed` | a prepared response begins; it was sent |
/// | `pieces` | a prepared response that the handlers send |
/// | `read`, `turn` | the bytes of a read were processed; the event loop has served other connections |
/// | `quiesce`, `displace`, `inactive` | the listener is shut down; another connection takes the permit; the channel ends |
/// | `full` | the outbound buffer has bytes that the client does not accept |
/// | a number | seconds pass |
///
/// Actions: processed input, written parts, `error` (the error response), `close`, `reset`, `shut` (the output is closed),
/// `gone` (the client), `eof!` (the client has left within its request), `-` (a write that was refused) and, only in ``actions``, `done` (a request and its
/// response have ended).
struct ConnectionModel {
    static let header = TimeAmount.seconds(15)

    private(set) var state = HTTPConnectionState(
        HTTPConnectionState.Timeouts(idle: .seconds(75), write: .seconds(300), halfClosed: .seconds(2)))
    private(set) var now = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    private(set) var actions: [String] = []
    /// The framing of the newest response.
    private(set) var framing: ResponseFraming?
    /// The bytes in the outbound buffer.
    private var buffered = 0

    /// A connection after the events of a script.
    init(after script: String = "") {
        state.start(at: now, within: Self.header)
        for event in script.split(separator: " ") { perform(String(event)) }
    }

    /// The actions after the events of a script, and the phase.
    static func run(_ script: String) -> String {
        let model = ConnectionModel(after: script)
        return (model.actions.filter { $0 != "done" } + ["→", model.phase]).joined(separator: " ")
    }

    var phase: String {
        switch state.phase {
        case .awaitingFirst: "new"
        case .idle: "idle"
        case .paused: "paused"
        case .readingHead: "head"
        case .exchange(let exchange):
            "\(exchange.request == .complete ? "complete" : "body")/\(Self.name(exchange.response))"
        case .bypassed: "bypassed"
        case .refusing: "refusing"
        case .lingering: "lingering"
        case .closed: "closed"
        }
    }

    private static func name(_ response: HTTPConnectionState.Response) -> String {
        switch response {
        case .owed: "owed"
        case .writing: "writing"
        case .written: "written"
        case .sent: "sent"
        }
    }

    mutating func perform(_ event: String) {
        switch event {
        case "bytes": _ = state.bytesArrived(at: now, within: Self.header)
        case "head", "HEAD", "old", "last", "post": receive(.part(.head(Self.head(event))))
        case "part": receive(.part(.body(ByteBuffer(repeating: 0, count: 1))))
        case "more": receive(.part(.body(ByteBuffer(repeating: 0, count: 1 << 20))))
        case "end": receive(.part(.end(nil)))
        case "bad": receive(.error(CacheError(.malformedRequest, "")))
        case "eof": receive(.end)
        case "<head", "<open", "<bye":
            framing = state.beginResponse(isUnbounded: event == "<open", isLast: event == "<bye", at: now)
            write(event, framing != nil)
        case "<part": write(event, state.mayWrite(at: now))
        case "<end": write(event, state.endResponse(at: now) != nil)
        case "sent":
            buffered = 0
            complete(state.responseSent(at: now))
        case "full": buffered = 1
        case "bypass": if state.isIdle { state.beginBypass(at: now) } else { actions.append("-") }
        case "pieces": if state.isIdle { state.beginComplete(at: now) } else { actions.append("-") }
        case "passed": complete(state.endBypass(at: now))
        case "read": state.readEnded()
        case "turn": complete(state.resume())
        case "quiesce": if state.quiesce(at: now) { close() }
        case "displace": end(state.displace(at: now, within: Self.header))
        case "inactive": state.ended()
        default: wait(.seconds(Int64(event) ?? 0))
        }
    }

    private static func head(_ event: String) -> HTTPRequestHead {
        let fields: [String: HTTPHeaders] = ["post": ["Content-Length": "5"], "last": ["Connection": "close"]]
        let methods: [String: HTTPMethod] = ["post": .POST, "HEAD": .HEAD]
        return HTTPRequestHead(
            version: event == "old" ? .http1_0 : .http1_1, method: methods[event] ?? .GET, uri: "/",
            headers: fields[event] ?? [:])
    }

    private mutating func receive(_ input: HTTPConnectionState.Input) {
        if state.receive(input, at: now) { deliver(input) }
    }

    private mutating func deliver(_ input: HTTPConnectionState.Input) {
        switch input {
        case .part(.head(let head)):
            state.begin(
                RequestFraming(head, isLast: false),
                head.hasBody ? HTTPConnectionState.BodyWindow(.seconds(10), at: now) : .none)
            actions.append(head.hasBody ? "post" : "head")
        case .part(.body(let bytes)):
            state.bodyArrived(bytes.readableBytes, at: now)
            actions.append("part")
        case .part(.end):
            actions.append("end")
            complete(state.requestEnded())
        case .error: end(state.refuse(at: now, within: Self.header))
        case .end: actions.append(state.clientEnded() ? "eof!" : "eof")
        }
    }

    private mutating func write(_ event: String, _ isPermitted: Bool) { actions.append(isPermitted ? event : "-") }

    private mutating func complete(_ completion: HTTPConnectionState.Completion) {
        switch completion {
        case .none: break
        case .pause: actions.append("done")
        case .ready:
            if state.phase == .idle { actions.append("done") }
            while let input = state.next() { deliver(input) }
        case .closeOutput:
            actions += ["done", "shut"]
            while let input = state.next() { deliver(input) }
        case .close:
            actions.append("done")
            close()
        }
    }

    private mutating func end(_ refusal: HTTPConnectionState.Refusal) {
        switch refusal {
        case .answer: actions.append("error")
        case .close: close()
        case .none: break
        }
    }

    private mutating func close() { actions.append(state.cutsBody ? "reset" : "close") }

    /// Lets time pass. Deadlines expire at their time.
    private mutating func wait(_ time: TimeAmount) {
        let end = now + time
        while state.check <= end {
            now = state.check
            expire()
        }
        now = end
    }

    mutating func expire() {
        switch state.expire(
            at: now, HTTPConnectionState.Outbound(bytes: buffered, isWritable: buffered == 0))
        {
        case .wait: break
        case .headIsLate, .bodyIsLate: end(state.refuse(at: now, within: Self.header))
        case .clientIsGone: actions.append("gone")
        case .close: close()
        }
    }
}
