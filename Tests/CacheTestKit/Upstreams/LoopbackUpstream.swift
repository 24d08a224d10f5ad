package import CacheCore
import Synchronization
import Foundation

/// HTTP/1.1 server on 127.0.0.1. It serves generated assets of any size, injects scripted faults and records every
/// request.
///
///     let upstream = try LoopbackUpstream()
///     upstream.serve("/a.mp4", LoopbackAsset(size: 1 << 20))
///     upstream.failNext("/a.mp4", .cut(after: 400))
///     … fetch upstream.url("/a.mp4") …
///     #expect(upstream.requests(for: "/a.mp4").map(\.range) == [0..<1000, 400..<1000])
package final class LoopbackUpstream: Sendable {
    package typealias Answering = @Sendable (LoopbackRequest) -> LoopbackAnswer

    /// The ephemeral port assigned by the system.
    package let port: Int
    private let scheduler: LoopbackDesk
    private let listener: Int32
    private let isStopped = Atomic(false)

    /// Listens on an ephemeral port of the loopback interface. Throws the system error on failure.
    package init() throws {
        (listener, port) = try LoopbackSocket.listening()
        scheduler = LoopbackDesk()
        Thread.detachNewThread { [scheduler, listener] in
            while let socket = LoopbackSocket.accepted(by: listener) {
                guard let number = scheduler.opened(socket) else { break }
                Thread.detachNewThread {
                    LoopbackConnection(socket: socket, number: number, scheduler: scheduler).run()
                    scheduler.closed(socket)
                }
            }
            close(listener)
        }
    }

    deinit { stop() }

    /// Ends every connection and stops listening. Later calls have no effect.
    package func stop() {
        // Once only: a later socket may reuse the descriptor number of the listener.
        guard !isStopped.exchange(true, ordering: .relaxed) else { return }
        shutdown(listener, Int32(SHUT_RDWR))
        scheduler.stop()
    }

    /// Serves `asset` at `path` and replaces the previous asset, for example to change the generation.
    package func serve(_ path: String, _ asset: LoopbackAsset) {
        serve(path) { _ in .asset(asset) }
    }

    /// Answers every request for `path` with the result of `answering`, called on the connection's thread.
    package func serve(_ path: String, answering: @escaping Answering) {
        scheduler.state.change { $0.routes[path] = answering }
    }

    /// Applies one set of faults to each of the next requests for `path`. Later requests succeed.
    package func failNext(_ path: String, _ faults: [LoopbackFault]...) {
        scheduler.state.change { $0.faults[path, default: []] += faults }
    }

    /// Applies a fault to the next request for `path`.
    package func failNext(_ path: String, _ fault: LoopbackFault) { failNext(path, [fault]) }

    package func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

    /// All requests so far, in order of arrival.
    package var requests: [LoopbackRequest] { scheduler.state.state.requests }

    package func requests(for path: String) -> [LoopbackRequest] { requests.filter { $0.path == path } }

    /// The sum of the ranges requested from `path`. A byte requested twice counts twice.
    package func requestedBytes(_ path: String) -> Int64 {
        requests(for: path).reduce(0) { $0 + ($1.range?.length ?? 0) }
    }

    /// The union of the ranges requested from `path`.
    package func requestedRanges(_ path: String) -> ByteRangeSet {
        ByteRangeSet(requests(for: path).compactMap(\.range))
    }

    /// The body bytes written to sockets for `path`.
    package func sentBytes(_ path: String) -> Int64 { requests(for: path).reduce(0) { $0 + $1.sentBytes } }

    /// The number of accepted connections.
    package var connectionCount: Int { scheduler.state.state.connections }

    /// The number of open connections.
    package var openConnectionCount: Int { scheduler.state.state.open.count }

    /// Returns when `count` requests have arrived in total.
    package func waitForRequests(_ count: Int) async {
        await scheduler.state.value { $0.requests.count >= count ? () : nil }
    }

    /// Returns when `count` requests for `path` have arrived.
    package func waitForRequests(_ count: Int, for path: String) async {
        await scheduler.state.value { state in state.requests.count { $0.path == path } >= count ? () : nil }
    }

    /// Returns when no more than `count` connections are open.
    package func waitForOpenConnections(atMost count: Int) async {
        await scheduler.state.value { $0.open.count <= count ? () : nil }
    }

    /// The bytes in `range` of an asset with `seed`.
    package static func bytes(at range: ByteRange, seed: UInt64 = 1) -> [UInt8] {
        LoopbackBody.bytes(at: range, seed: seed)
    }
}

/// State shared by the threads of the server: routes and recorded requests.
final class LoopbackDesk: Sendable {
    struct State {
        var routes: [String: LoopbackUpstream.Answering] = [:]
        var faults: [String: [[LoopbackFault]]] = [:]
        var requests: [LoopbackRequest] = []
        var connections = 0
        var open: Set<Int32> = []
        var latches: [LoopbackLatch] = []
        var isStopped = false
    }

    let state = AsyncCondition(State())

    /// Registers a connection and returns its number; nil after a stop.
    func opened(_ socket: Int32) -> Int? {
        state.change { state in
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
        state.change { state in
            state.open.remove(socket)
            close(socket)
        }
    }

    func stop() {
        let latches = state.change { state in
            state.isStopped = true
            for socket in state.open { shutdown(socket, Int32(SHUT_RDWR)) }
            return state.latches
        }
        for latch in latches { latch.release() }
    }

    /// Blocks until `latch` is released or the server stops.
    func pass(_ latch: LoopbackLatch) {
        let isStopped = state.change { state in
            state.latches.append(latch)
            return state.isStopped
        }
        if isStopped { latch.release() }
        latch.pass()
    }
}
