import CacheCore
import NIOCore

/// The prepared responses of one event loop, and a pool of buffers for them.
///
/// It is confined to its event loop and therefore has no lock.
final class PreparedResponseCache {
    /// By the hash of the fingerprint. Of two requests with the same hash the last one is kept.
    private var preparedResponses = BoundedTable<Int, PreparedResponse>(capacity: 2048)
    /// Unused buffers.
    private var free: [ByteBuffer] = []
    private var name: RequestID
    /// The maximum number of unused buffers.
    private static let mostBuffers = 64

    init(random: any RandomSource) { name = RequestID(random) }

    /// The identifier of the next request.
    func nextRequestID() -> RequestID {
        name.number &+= 1
        return name
    }

    /// The response prepared for a request that differs from `request` in its range at most.
    subscript(request: RequestFingerprint) -> PreparedResponse? {
        guard let preparedResponse = preparedResponses[request.hash],
            preparedResponse.fingerprint.isSame(as: request)
        else { return nil }
        return preparedResponse
    }

    /// Stores an entry.
    func keep(_ preparedResponse: PreparedResponse) {
        preparedResponses[preparedResponse.fingerprint.hash] = preparedResponse
    }

    /// Removes an entry that is no longer valid.
    func forget(_ preparedResponse: PreparedResponse) { preparedResponses[preparedResponse.fingerprint.hash] = nil }

    /// Returns an empty buffer.
    func takeBuffer() -> ByteBuffer {
        guard var buffer = free.popLast() else {
            return ByteBufferAllocator().buffer(capacity: PreparedResponse.bufferBytes)
        }
        // The buffer is cleared here and not in `giveBack`, where its storage is still shared with the caller: clearing
        // a shared buffer allocates new storage.
        buffer.clear()
        return buffer
    }

    /// Returns a buffer to the pool when its bytes are no longer needed.
    func giveBack(_ buffer: ByteBuffer) { if free.count < Self.mostBuffers { free.append(buffer) } }
}

@available(*, unavailable)
extension PreparedResponseCache: Sendable {}

/// The registry of the ``PreparedResponseCache`` of each event loop.
final class PreparedResponseCaches: Sendable {
    private let random: any RandomSource
    /// Guards the caches by event loop. Locked once for each connection.
    private let responseCaches = OrderedMutex<[ObjectIdentifier: NIOLoopBound<PreparedResponseCache>]>(
        .preparedResponses, [:])

    init(random: any RandomSource) { self.random = random }

    /// Returns the cache of `eventLoop`. Call it on that event loop.
    func responseCache(of eventLoop: any EventLoop) -> PreparedResponseCache {
        let bound = responseCaches.withLock { responseCaches in
            let known =
                responseCaches[ObjectIdentifier(eventLoop)]
                ?? NIOLoopBound(PreparedResponseCache(random: random), eventLoop: eventLoop)
            responseCaches[ObjectIdentifier(eventLoop)] = known
            return known
        }
        return bound.value
    }
}

/// A request identifier with 32 hexadecimal digits, in the format of ``RandomSource/identifier()``.
///
/// The first 16 digits are random and fixed for each event loop. The other 16 encode a counter, so that an identifier
/// costs no random bytes and no allocation.
struct RequestID {
    /// The random first half, in ASCII. It is no array, so that copies of an identifier count no references.
    private let half: [16 of UInt8]
    /// The counter.
    var number: UInt64 = 0

    fileprivate init(_ random: any RandomSource) {
        let digits = Array(random.identifier().utf8)
        half = InlineArray { digits[$0] }
    }

    /// The identifier as a string.
    var text: String {
        String(unsafeUninitializedCapacity: 32) { write(to: UnsafeMutableRawBufferPointer($0)[...]) }
    }

    /// Writes the 32 characters of the identifier and returns their number.
    func write(to space: Slice<UnsafeMutableRawBufferPointer>) -> Int {
        let space = UnsafeMutableRawBufferPointer(rebasing: space)
        for place in half.indices { space[place] = half[place] }
        // The factor is odd, so the multiplication modulo 2^64 is a bijection: identifiers are unique.
        let mixed = number &* 0x9E37_79B9_7F4A_7C15
        for place in 0..<16 {
            let digit = UInt8(truncatingIfNeeded: mixed >> UInt64(60 - 4 * place)) & 15
            space[half.count + place] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") - 10 + digit
        }
        return half.count + 16
    }
}
