package import CacheCore
import Dispatch

/// Asset of the loopback upstream, served with ranges, conditional requests and HEAD like a correct origin.
package struct LoopbackAsset: Sendable {
    /// The framing of the body.
    package enum Framing: Sendable { case length, chunked, untilClose }

    package var size: Int64
    /// The bytes of the asset; nil: they are computed from ``seed``.
    package var content: [UInt8]?
    /// Determines the bytes. A changed asset has a different seed and a different entity tag.
    package var seed: UInt64
    package var etag: String?
    package var lastModified: String?
    package var contentType: String?
    package var cacheControl: String?
    /// Added to every response.
    package var headers: HeaderList
    /// False: `Range` is ignored and the response is a complete 200.
    package var acceptsRanges: Bool
    package var framing: Framing
    /// Faults applied to every response.
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

    /// An asset with the given bytes.
    package init(content: [UInt8], contentType: String?) {
        self.init(size: Int64(content.count), contentType: contentType)
        self.content = content
    }

    /// The bytes of the asset in `range`.
    package func bytes(_ range: ByteRange) -> [UInt8] {
        content.map { Array($0[Int(range.lowerBound)..<Int(range.upperBound)]) }
            ?? LoopbackBody.bytes(at: range, seed: seed)
    }
}

/// A fault of one response. Offsets count body bytes of this response.
package enum LoopbackFault: Sendable {
    /// Closes the connection in an orderly manner (FIN) at this offset.
    case cut(after: Int64)
    /// Resets the connection (RST) at this offset.
    case reset(after: Int64)
    case stallBeforeHead(until: LoopbackLatch)
    case stallBeforeBody(until: LoopbackLatch)
    case stall(after: Int64, until: LoopbackLatch)
    case pace(bytesPerSecond: Int64)
}

/// The response to one request.
package enum LoopbackAnswer: Sendable {
    case asset(LoopbackAsset)
    /// A response with an explicit body, framed by `Content-Length`.
    case response(status: Int, headers: HeaderList = [:], body: [UInt8] = [])
    case redirect(to: String, status: Int = 302)
    /// Sends the bytes unchanged, then closes the connection.
    case raw([UInt8])
    /// Resets the connection without a response.
    case hangUp
}

/// One received request.
package struct LoopbackRequest: Sendable {
    /// The index among all requests, from 0.
    package var number: Int
    /// The index of the connection, from 0. Equal numbers indicate a reused connection.
    package var connection: Int
    package var method: String
    /// Path and query as received.
    package var target: String
    package var headers: HeaderList
    /// The requested bytes, resolved against the asset size: all bytes without a `Range`. nil for HEAD, and if the
    /// bytes cannot be determined.
    package var range: ByteRange?
    /// The status of the response; 0 until it is known.
    package var status = 0
    /// Body bytes written to the socket.
    package var sentBytes: Int64 = 0

    package var path: String { target.split(separator: "?", maxSplits: 1).first.map(String.init) ?? target }
}

/// Holds responses back until it is released. A waiting response blocks its thread.
package final class LoopbackLatch: Sendable {
    private struct State {
        var isReleased = false
        var arrivals = 0
    }

    private let state = AsyncCondition(State())
    private let gate = DispatchSemaphore(value: 0)

    package init() {}

    /// Releases all waiting responses and all later ones.
    package func release() {
        let isFirst = state.change { state in
            defer { state.isReleased = true }
            return !state.isReleased
        }
        if isFirst { gate.signal() }
    }

    /// Returns when `count` responses have reached the latch.
    package func reached(_ count: Int = 1) async {
        await state.value { $0.arrivals >= count ? () : nil }
    }

    /// Blocks the calling thread until the latch is released.
    func pass() {
        state.change { $0.arrivals += 1 }
        gate.wait()
        gate.signal()
    }
}
