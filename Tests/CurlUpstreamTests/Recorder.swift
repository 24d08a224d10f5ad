import CacheCore
import CacheTestKit
import Logging
import Synchronization

@testable import CurlUpstream

/// Transfer delegate and byte sink that records all callbacks.
final class Recorder: TransferDelegate, ByteSink {
    /// Recorded callbacks, and tests that wait for a condition.
    struct State {
        var heads: [UpstreamHead] = []
        var bytes: [UInt8] = []
        var writes: [Int] = []
        var progress: [Int64] = []
        var ends: [TransferEnd] = []
        var calls: [String] = []
        var waiters: [(condition: @Sendable (State) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())
    private let verdict: @Sendable (Recorder, UpstreamHead) -> HeadVerdict
    private let onWrite: @Sendable (Int) throws(CacheError) -> Void
    private let onEnd: @Sendable () -> Void
    private let onStart: @Sendable () throws(CacheError) -> Void

    init(
        onStart: @escaping @Sendable () throws(CacheError) -> Void = {},
        onWrite: @escaping @Sendable (Int) throws(CacheError) -> Void = { _ in },
        onEnd: @escaping @Sendable () -> Void = {},
        judging verdict: @escaping @Sendable (Recorder, UpstreamHead) -> HeadVerdict = { sink, _ in
            .store(into: sink, limit: nil)
        }
    ) {
        self.verdict = verdict
        self.onStart = onStart
        self.onWrite = onWrite
        self.onEnd = onEnd
    }

    static func limited(_ limit: Int64) -> Recorder {
        Recorder(judging: { sink, _ in .store(into: sink, limit: limit) })
    }

    func started() throws(CacheError) {
        update { $0.calls.append("started") }
        try onStart()
    }

    func began(_ head: UpstreamHead) -> HeadVerdict {
        update {
            $0.heads.append(head)
            $0.calls.append("began")
        }
        return verdict(self, head)
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(CacheError) {
        try onWrite(bytes.count)
        let copy = Array(bytes)
        update {
            $0.bytes += copy
            $0.writes.append(copy.count)
        }
    }

    func progressed(to total: Int64) {
        update {
            $0.progress.append(total)
            $0.calls.append("progressed")
        }
    }

    func ended(_ end: TransferEnd) {
        onEnd()
        update {
            $0.ends.append(end)
            $0.calls.append("ended")
        }
    }

    var bytes: [UInt8] { state.withLock { $0.bytes } }
    var writes: [Int] { state.withLock { $0.writes } }
    var progress: [Int64] { state.withLock { $0.progress } }
    var calls: [String] { state.withLock { $0.calls } }
    var ends: [TransferEnd] { state.withLock { $0.ends } }
    var head: UpstreamHead? { state.withLock { $0.heads.first } }
    var headCount: Int { state.withLock { $0.heads.count } }

    /// Waits for the end of the transfer and returns it.
    func end() async -> TransferEnd {
        await wait { !$0.ends.isEmpty }
        return ends.first ?? TransferEnd()
    }

    /// Waits for the end of the transfer and returns its error code; nil after a success.
    func failure() async -> CacheError.Code? { await end().error?.code }

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

    private func update(_ change: (inout sending State) -> Void) {
        let woken = state.withLock { state in
            change(&state)
            let snapshot = state
            let met = snapshot.waiters.filter { $0.condition(snapshot) }.map(\.continuation)
            state.waiters.removeAll { $0.condition(snapshot) }
            return met
        }
        for continuation in woken { continuation.resume() }
    }
}

extension CurlWorkerPool {
    /// A small pool for one test.
    static func forTest(
        workers: Int = 2, maxTransfers: Int = 64, maxHeaderLines: Int = 1000, transfersPerWorker: Int = 8,
        maxBytesPerSecond: Int64? = nil
    ) -> CurlWorkerPool {
        CurlWorkerPool(
            settings: CurlPoolSettings(
                workers: workers, maxTransfers: maxTransfers, maxHeaderLines: maxHeaderLines,
                transfersPerWorker: transfersPerWorker, maxBytesPerSecond: maxBytesPerSecond),
            clock: ContinuousClock(), logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
    }

    /// Starts `request`, and returns the recorder of its callbacks.
    @discardableResult
    func fetch(_ request: UpstreamRequest, into recorder: Recorder = Recorder()) -> Recorder {
        _ = start(request, delivering: recorder)
        return recorder
    }
}

extension LoopbackUpstream {
    /// A request that may connect to loopback addresses.
    func request(_ path: String, _ window: UpstreamRequest.Window = .whole) -> UpstreamRequest {
        UpstreamRequest(url: url(path), window: window, originName: "test", allowPrivateAddresses: true)
    }
}

func timeouts(
    connect: Duration? = nil, firstByte: Duration? = nil, idle: Duration? = nil, total: Duration? = nil
) -> TransferTimeouts {
    TransferTimeouts(connect: connect, firstByte: firstByte, idle: idle, total: total)
}

extension Transfer {
    /// Pauses the transfer: no further byte is allowed.
    func pause() { allow(upTo: 0) }

    /// Resumes the transfer: the whole body is allowed.
    func resume() { allow(upTo: .max) }
}
