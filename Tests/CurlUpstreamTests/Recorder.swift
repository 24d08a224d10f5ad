import CacheCore
import CacheTestKit
import Logging

@testable import CurlUpstream

/// Transfer delegate and byte sink that records all callbacks.
final class Recorder: TransferDelegate, ByteSink {
    /// Recorded callbacks.
    struct State {
        var heads: [UpstreamHead] = []
        var bytes: [UInt8] = []
        var writes: [Int] = []
        var progress: [Int64] = []
        var ends: [TransferEnd] = []
        var calls: [String] = []
    }

    private let recorded = AsyncCondition(State())
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
        recorded.change { $0.calls.append("started") }
        try onStart()
    }

    func began(_ head: UpstreamHead) -> HeadVerdict {
        recorded.change {
            $0.heads.append(head)
            $0.calls.append("began")
        }
        return verdict(self, head)
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(CacheError) {
        try onWrite(bytes.count)
        let copy = Array(bytes)
        recorded.change {
            $0.bytes += copy
            $0.writes.append(copy.count)
        }
    }

    func progressed(to total: Int64) {
        recorded.change {
            $0.progress.append(total)
            $0.calls.append("progressed")
        }
    }

    func ended(_ end: TransferEnd) {
        onEnd()
        recorded.change {
            $0.ends.append(end)
            $0.calls.append("ended")
        }
    }

    var bytes: [UInt8] { recorded.state.bytes }
    var writes: [Int] { recorded.state.writes }
    var progress: [Int64] { recorded.state.progress }
    var calls: [String] { recorded.state.calls }
    var ends: [TransferEnd] { recorded.state.ends }
    var head: UpstreamHead? { recorded.state.heads.first }
    var headCount: Int { recorded.state.heads.count }

    /// Waits for the end of the transfer and returns it.
    func end() async -> TransferEnd {
        await recorded.value { $0.ends.first }
    }

    /// Waits for the end of the transfer and returns its error code; nil after a success.
    func failure() async -> CacheError.Code? { await end().error?.code }

    func wait(until condition: @escaping @Sendable (State) -> Bool) async {
        await recorded.value { condition($0) ? () : nil }
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
