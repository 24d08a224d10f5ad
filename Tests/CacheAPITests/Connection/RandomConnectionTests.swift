import NIOCore
import TestChance
import Testing

@testable import CacheAPI

/// Random events on the state machine of a connection, and the rules that always hold.
@Suite struct RandomConnectionTests {
    /// A client and a server that do whatever they can do, in a random order.
    private struct Run {
        var random: SeededRandom
        var model = ConnectionModel()
        var events: [String] = []
        /// Whether the client is within a request with a body.
        var isSendingBody = false
        /// Whether the client can send: it has sent neither an error nor the end of its side.
        var canSend = true
        /// The requests that were processed, that got a response and ended, and that the end of the connection has cut.
        private(set) var (heads, completed, aborted) = (0, 0, 0)
        private(set) var isClosed = false
        /// Whether the output is closed.
        private var isOver = false
        /// Whether a request is in progress, and whether its response has begun.
        private var (isInProgress, isAnswered) = (false, false)

        init(_ random: SeededRandom) { self.random = random }

        mutating func step() {
            let event = next()
            let isHead = ["head", "HEAD", "old", "last"].contains(event)
            for event in isHead ? [event, "end"] : [event] { perform(event) }
            #expect((model.state.check == .distantFuture) == isClosed, "a deadline is armed until the end: \(events)")
        }

        mutating func perform(_ event: String) {
            events.append(event)
            let before = model.actions.count
            model.perform(event)
            for action in model.actions[before...] { follow(action) }
        }

        private mutating func follow(_ action: String) {
            let isPermitted =
                ["-", "eof", "eof!", "gone"].contains(action) || (!isClosed && ["close"].contains(action))
            #expect(!isOver || isPermitted, "\(action) after the end: \(events)")
            switch action {
            case "head", "post":
                #expect(!isInProgress, "a second request: \(events)")
                heads += 1
                (isInProgress, isAnswered) = (true, false)
            case "<head", "<open", "<bye", "error":
                #expect(isInProgress || action == "error", "a response without a request: \(events)")
                #expect(!isInProgress || !isAnswered, "a second response: \(events)")
                isAnswered = true
                if action == "error" { abort() }
            case "done":
                #expect(!isInProgress || isAnswered, "an end without a response: \(events)")
                if isInProgress { (isInProgress, completed) = (false, completed + 1) }
            case "shut": isOver = true
            case "close", "reset": end()
            default: break
            }
        }

        /// The channel is inactive, or is being closed.
        mutating func end() {
            (isOver, isClosed) = (true, true)
            abort()
        }

        private mutating func abort() { if isInProgress { (isInProgress, aborted) = (false, aborted + 1) } }

        /// The client sends nothing more, and accepts everything. The server completes its responses.
        mutating func finish() {
            canSend = false
            for _ in 0..<20 { for event in ["<head", "<end", "sent", "passed", "turn"] { perform(event) } }
            for _ in 0..<20 { perform("300") }
        }

        private mutating func next() -> String {
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<35: return clientEvent()
            case 35..<85: return serverEvent()
            case 85..<95:
                return ["0", "1", "2", "5", "10", "15", "75", "300", "600"].randomElement(using: &random) ?? "1"
            case 95..<97: return "full"
            case 97: return "quiesce"
            default: return Bool.random(using: &random) ? "displace" : "bypass"
            }
        }

        private mutating func clientEvent() -> String {
            guard canSend else { return "full" }
            switch Int.random(in: 0..<20, using: &random) {
            case 0:
                canSend = false
                return "bad"
            case 1:
                canSend = false
                return "eof"
            case _ where isSendingBody:
                let event = ["part", "more", "end"].randomElement(using: &random) ?? "end"
                isSendingBody = event != "end"
                return event
            case 2..<6: return "bytes"
            case 6..<10:
                isSendingBody = true
                return "post"
            default: return ["head", "head", "head", "HEAD", "old", "last"].randomElement(using: &random) ?? "head"
            }
        }

        private mutating func serverEvent() -> String {
            switch model.state.phase {
            case .bypassed: "passed"
            case .paused: "turn"
            case .exchange(let exchange) where Int.random(in: 0..<10, using: &random) > 0:
                switch exchange.response {
                case .owed: ["<head", "<open", "<bye"].randomElement(using: &random) ?? "<head"
                case .writing: Bool.random(using: &random) ? "<part" : "<end"
                case .written, .sent: "sent"
                }
            default: ["<head", "<part", "<end", "sent", "passed"].randomElement(using: &random) ?? "<head"
            }
        }
    }

    @Test("Each request has one response, each connection ends, and no deadline is missing", arguments: 0..<4)
    func rules(round: Int) {
        let (random, seed) = SeededRandom.announced(round)
        var seeds = random
        for _ in 0..<600 {
            var run = Run(SeededRandom(seed: seeds.next()))
            for _ in 0..<Int.random(in: 1..<60, using: &seeds) { run.step() }
            if Bool.random(using: &seeds) {
                run.finish()
                #expect(run.isClosed, "open without a deadline: \(run.events), seed \(seed)")
            }
            run.perform("inactive")
            run.end()
            #expect(run.heads == run.completed + run.aborted, "\(run.events), seed \(seed)")
            #expect(run.model.phase == "closed" && run.model.state.check == .distantFuture)
            for event in ["<head", "bypass", "head", "bad", "300", "quiesce", "displace"] { run.perform(event) }
        }
    }
}
