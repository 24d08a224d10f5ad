package import CacheCore
import Foundation
import Synchronization

/// A real HTTP/1.1 server on 127.0.0.1 that serves made-up assets of any size, misbehaves as told, and remembers every
/// request.
///
///     let upstream = try LoopbackUpstream()
///     upstream.serve("/a.mp4", LoopbackAsset(size: 1 << 20))
///     upstream.failNext("/a.mp4", .cut(after: 400))
///     … fetch upstream.url("/a.mp4") …
///     #expect(upstream.requests(for: "/a.mp4").map(\.range) == [0..<1000, 400..<1000])
package final class LoopbackUpstream: Sendable {
    package typealias Answering = @Sendable (LoopbackRequest) -> LoopbackAnswer

    /// Chosen by the system.
    package let port: Int
    private let desk: LoopbackDesk
    private let listener: Int32
    private let isStopped = Atomic(false)

    /// Listens on an ephemeral port of the loopback interface; throws the system's error where it cannot.
    package init() throws {
        (listener, port) = try LoopbackSocket.listening()
        desk = LoopbackDesk()
        Thread.detachNewThread { [desk, listener] in
            while let socket = LoopbackSocket.accepted(by: listener) {
                guard let number = desk.opened(socket) else { break }
                Thread.detachNewThread {
                    LoopbackConnection(socket: socket, number: number, desk: desk).run()
                    desk.closed(socket)
                }
            }
            close(listener)
        }
    }

    deinit { stop() }

    /// Ends every connection and stops listening; may be called again.
    package func stop() {
        // Once only: the listener's number may be another socket's by now.
        guard !isStopped.exchange(true, ordering: .relaxed) else { return }
        shutdown(listener, Int32(SHUT_RDWR))
        desk.stop()
    }

    /// Serves `asset` at `path`, in place of what was there: the way to change a generation.
    package func serve(_ path: String, _ asset: LoopbackAsset) {
        serve(path) { _ in .asset(asset) }
    }

    /// Answers every request for `path` as `answering` says; it runs on the connection's thread.
    package func serve(_ path: String, answering: @escaping Answering) {
        desk.state.withLock { $0.routes[path] = answering }
    }

    /// The next requests for `path`, one for each set of faults, go wrong as told; later ones are well again.
    package func failNext(_ path: String, _ faults: [LoopbackFault]...) {
        desk.state.withLock { $0.faults[path, default: []] += faults }
    }

    /// The next request for `path` goes wrong as told.
    package func failNext(_ path: String, _ fault: LoopbackFault) { failNext(path, [fault]) }

    package func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

    /// Every request so far, in the order they came.
    package var requests: [LoopbackRequest] { desk.state.withLock { $0.requests } }

    package func requests(for path: String) -> [LoopbackRequest] { requests.filter { $0.path == path } }

    /// The sum of the ranges asked of `path`; what was asked for twice counts twice.
    package func requestedBytes(_ path: String) -> Int64 {
        requests(for: path).reduce(0) { $0 + ($1.range?.length ?? 0) }
    }

    /// The union of the ranges asked of `path`.
    package func requestedRanges(_ path: String) -> ByteRangeSet {
        ByteRangeSet(requests(for: path).compactMap(\.range))
    }

    /// The body bytes handed to sockets for `path`.
    package func sentBytes(_ path: String) -> Int64 { requests(for: path).reduce(0) { $0 + $1.sentBytes } }

    /// Connections accepted so far.
    package var connectionCount: Int { desk.state.withLock { $0.connections } }

    /// Connections open now.
    package var openConnectionCount: Int { desk.state.withLock { $0.open.count } }

    /// Returns when `count` requests have come in all.
    package func waitForRequests(_ count: Int) async { await desk.wait { $0.requests.count >= count } }

    /// Returns when `count` requests have come for `path`.
    package func waitForRequests(_ count: Int, for path: String) async {
        await desk.wait { state in state.requests.count { $0.path == path } >= count }
    }

    /// Returns when no more than `count` connections are open.
    package func waitForOpenConnections(atMost count: Int) async { await desk.wait { $0.open.count <= count } }

    /// The bytes an asset with `seed` has at `range`.
    package static func bytes(at range: ByteRange, seed: UInt64 = 1) -> [UInt8] {
        LoopbackBody.bytes(at: range, seed: seed)
    }
}

/// What the server's threads share: the routes, the record, and who waits for it to grow.
final class LoopbackDesk: Sendable {
    struct State {
        var routes: [String: LoopbackUpstream.Answering] = [:]
        var faults: [String: [[LoopbackFault]]] = [:]
        var requests: [LoopbackRequest] = []
        var connections = 0
        var open: Set<Int32> = []
        var latches: [LoopbackLatch] = []
        var isStopped = false
        var waiters: [(condition: @Sendable (State) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
    }

    let state = Mutex(State())

    /// Changes the state, then wakes those whose condition has come true.
    func update<Result: Sendable>(_ change: (inout sending State) -> Result) -> Result {
        let (result, woken) = state.withLock { state in
            let result = change(&state)
            guard !state.waiters.isEmpty else { return (result, [CheckedContinuation<Void, Never>]()) }
            let met = state.waiters.filter { $0.condition(state) }.map(\.continuation)
            let snapshot = state
            state.waiters.removeAll { $0.condition(snapshot) }
            return (result, met)
        }
        for continuation in woken { continuation.resume() }
        return result
    }

    func wait(until condition: @escaping @Sendable (State) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isMet = state.withLock { state in
                if condition(state) { return true }
                state.waiters.append((condition, continuation))
                return false
            }
            if isMet { continuation.resume() }
        }
    }

    /// The new connection's number; nil once stopped.
    func opened(_ socket: Int32) -> Int? {
        update { state in
            guard !state.isStopped else {
                close(socket)
                return nil
            }
            state.open.insert(socket)
            state.connections += 1
            return state.connections - 1
        }
    }

    func closed(_ socket: Int32) {
        update { state in
            state.open.remove(socket)
            close(socket)
        }
    }

    func stop() {
        let latches = update { state in
            state.isStopped = true
            for socket in state.open { shutdown(socket, Int32(SHUT_RDWR)) }
            return state.latches
        }
        for latch in latches { latch.release() }
    }

    /// Blocks until `latch` is released or the server stops.
    func pass(_ latch: LoopbackLatch) {
        let isStopped = state.withLock { state in
            state.latches.append(latch)
            return state.isStopped
        }
        if isStopped { latch.release() }
        latch.pass()
    }
}
