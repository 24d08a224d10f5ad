import CacheCore
import Foundation

/// One connection of the loopback upstream. It reads requests and answers them in order on its own thread.
final class LoopbackConnection {
    /// Microseconds from a request to its answer: reveals tests that take a request for an answer (CONTRIBUTING.md).
    private static let delay = UInt32(
        1_000_000 * (ProcessInfo.processInfo.environment["ANSWER_DELAY"].flatMap(Double.init) ?? 0))

    private let socket: Int32
    private let number: Int
    private let scheduler: LoopbackDesk
    private var received: [UInt8] = []
    private var index = 0

    init(socket: Int32, number: Int, scheduler: LoopbackDesk) {
        self.socket = socket
        self.number = number
        self.scheduler = scheduler
    }

    func run() {
        while let head = nextHead(), let request = parsed(head) {
            guard answer(request), request.headers["Connection"]?.lowercased() != "close" else { break }
        }
    }

    /// Answers a request. Returns false if the connection must be closed.
    private func answer(_ received: LoopbackRequest) -> Bool {
        var request = received
        let (known, faults) = scheduler.state.change { state in
            request.number = state.requests.count
            let known = state.routes[request.path]
            var faults: [LoopbackFault]?
            if let waiting = state.faults[request.path], !waiting.isEmpty {
                faults = waiting[0]
                state.faults[request.path]?.removeFirst()
            }
            return (known, faults)
        }
        let answer = known?(request) ?? .response(status: 404, body: Array("not here".utf8))
        var plan = LoopbackPlan(answer, to: request)
        plan.faults += faults ?? []
        request.range = plan.asked
        request.status = plan.status
        index = scheduler.state.change { [request] state in
            state.requests.append(request)
            return state.requests.count - 1
        }
        return perform(plan)
    }

    private func perform(_ plan: LoopbackPlan) -> Bool {
        if Self.delay > 0 { usleep(Self.delay) }
        if case .hangUp = plan.content {
            LoopbackSocket.setReset(socket)
            return false
        }
        for case .stallBeforeHead(let latch) in plan.faults { scheduler.pass(latch) }
        guard LoopbackSocket.send(plan.head, to: socket) else { return false }
        for case .stallBeforeBody(let latch) in plan.faults { scheduler.pass(latch) }
        return sendBody(plan) && !plan.closes
    }

    private func sendBody(_ plan: LoopbackPlan) -> Bool {
        var sent: Int64 = 0
        var stalls = plan.stalls
        let rate = plan.bytesPerSecond
        let piece = rate.map { max(1, min(65_536, $0 / 50)) } ?? 65_536
        let end = min(plan.length, plan.end?.after ?? plan.length)
        while sent < end || stalls.first?.after == sent {
            if let stall = stalls.first, stall.after <= sent {
                stalls.removeFirst()
                scheduler.pass(stall.latch)
                continue
            }
            let next = min(end, sent + piece, stalls.first?.after ?? end)
            guard sendPiece(plan, sent..<next) else { return false }
            sent = next
            if let rate { usleep(UInt32(piece * 1_000_000 / max(1, rate))) }
        }
        if let stop = plan.end, stop.after <= plan.length {
            if stop.isReset { LoopbackSocket.setReset(socket) }
            return false
        }
        return !plan.isChunked || LoopbackSocket.send(Array("0\r\n\r\n".utf8), to: socket)
    }

    private func sendPiece(_ plan: LoopbackPlan, _ range: ByteRange) -> Bool {
        var bytes = plan.bytes(range)
        if plan.isChunked {
            bytes = Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + Array("\r\n".utf8)
        }
        let isSent = LoopbackSocket.send(bytes, to: socket)
        if isSent { scheduler.state.change { [index] state in state.requests[index].sentBytes += range.length } }
        return isSent
    }

    /// The next request head without the empty line; nil after the end of the connection.
    private func nextHead() -> [UInt8]? {
        let mark: [UInt8] = [13, 10, 13, 10]
        while true {
            if received.count >= 4,
                let end = (0...(received.count - 4)).first(where: { Array(received[$0..<$0 + 4]) == mark })
            {
                defer { received.removeFirst(end + 4) }
                return Array(received[..<end])
            }
            guard let more = LoopbackSocket.receive(from: socket) else { return nil }
            received += more
        }
    }

    private func parsed(_ head: [UInt8]) -> LoopbackRequest? {
        let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
        let words = lines[0].split(separator: " ")
        guard words.count == 3 else { return nil }
        var headers = HeaderList()
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            headers.append(String(line[..<colon]), value)
        }
        return LoopbackRequest(
            number: 0, connection: number, method: String(words[0]), target: String(words[1]), headers: headers)
    }
}
