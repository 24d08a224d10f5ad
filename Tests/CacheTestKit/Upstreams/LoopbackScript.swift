package import CacheCore
import Dispatch
import Synchronization

/// An asset the loopback upstream serves with ranges, conditions and HEAD, as a well-behaved origin would.
package struct LoopbackAsset: Sendable {
    /// How the body's end is marked.
    package enum Framing: Sendable { case length, chunked, untilClose }

    package var size: Int64
    /// Chooses the bytes; a changed asset has another seed and another tag.
    package var seed: UInt64
    package var etag: String?
    package var lastModified: String?
    package var contentType: String?
    package var cacheControl: String?
    /// Added to every answer.
    package var headers: HeaderList
    /// False: `Range` is ignored, and the whole comes with 200.
    package var acceptsRanges: Bool
    package var framing: Framing
    /// What goes wrong, or slowly, each time.
    package var faults: [LoopbackFault]

    package init(
        size: Int64, seed: UInt64 = 1, etag: String? = "\"v1\"",
        lastModified: String? = "Wed, 01 Jan 2025 00:00:00 GMT", contentType: String? = "application/octet-stream",
        cacheControl: String? = nil, headers: HeaderList = [:], acceptsRanges: Bool = true,
        framing: Framing = .length, faults: [LoopbackFault] = []
    ) {
        self.size = size
        self.seed = seed
        self.etag = etag
        self.lastModified = lastModified
        self.contentType = contentType
        self.cacheControl = cacheControl
        self.headers = headers
        self.acceptsRanges = acceptsRanges
        self.framing = framing
        self.faults = faults
    }

    /// The asset's own bytes in `range`.
    package func bytes(_ range: ByteRange) -> [UInt8] { LoopbackBody.bytes(at: range, seed: seed) }
}

/// What goes wrong with one answer; byte counts are of this answer's body.
package enum LoopbackFault: Sendable {
    /// The connection ends in good order (FIN) after so many bytes.
    case cut(after: Int64)
    /// The connection is reset (RST) after so many bytes.
    case reset(after: Int64)
    case stallBeforeHead(until: LoopbackLatch)
    case stallBeforeBody(until: LoopbackLatch)
    case stall(after: Int64, until: LoopbackLatch)
    case pace(bytesPerSecond: Int64)
}

/// How one request is answered.
package enum LoopbackAnswer: Sendable {
    case asset(LoopbackAsset)
    /// A response with a body of its own, framed by `Content-Length`.
    case response(status: Int, headers: HeaderList = [:], body: [UInt8] = [])
    case redirect(to: String, status: Int = 302)
    /// These bytes as they are, then the connection closes.
    case raw([UInt8])
    /// The connection is reset without an answer.
    case hangUp
}

/// One request as it came.
package struct LoopbackRequest: Sendable {
    /// Its place in the order of all requests, from 0.
    package var number: Int
    /// Counts connections from 0: equal numbers mean that one was reused.
    package var connection: Int
    package var method: String
    /// Path and query as sent.
    package var target: String
    package var headers: HeaderList
    /// The bytes it asks for, resolved against the asset's size: all of them without a `Range`; nil where it cannot be
    /// said, and for HEAD.
    package var range: ByteRange?
    /// The answer's status; 0 until it is known.
    package var status = 0
    /// Body bytes handed to the socket.
    package var sentBytes: Int64 = 0

    package var path: String { target.split(separator: "?", maxSplits: 1).first.map(String.init) ?? target }
}

/// Holds an answer back until it is released; waiting for it costs a thread, not time.
package final class LoopbackLatch: Sendable {
    private struct State {
        var isReleased = false
        var arrivals = 0
        var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())
    private let gate = DispatchSemaphore(value: 0)

    package init() {}

    /// Lets everyone through, now and later.
    package func release() {
        let isFirst = state.withLock { state in
            defer { state.isReleased = true }
            return !state.isReleased
        }
        if isFirst { gate.signal() }
    }

    /// Returns when `count` answers have come to the latch.
    package func reached(_ count: Int = 1) async {
        await withCheckedContinuation { continuation in
            let isReached = state.withLock { state in
                if state.arrivals < count { state.waiters.append((count, continuation)) }
                return state.arrivals >= count
            }
            if isReached { continuation.resume() }
        }
    }

    /// Blocks the calling thread until the latch is released.
    func pass() {
        let woken = state.withLock { state in
            state.arrivals += 1
            let woken = state.waiters.filter { $0.count <= state.arrivals }
            state.waiters.removeAll { $0.count <= state.arrivals }
            return woken
        }
        for waiter in woken { waiter.continuation.resume() }
        gate.wait()
        gate.signal()
    }
}
