import CCurl
import CacheCore

/// Flow control of an exchange: rate limit and pauses.
extension CurlExchange {
    /// State of a pause.
    enum Hold {
        /// Bytes are received, as far as the rate limit allows.
        case none
        /// The allowance is used up, or the scheduler has taken the permit; no permit is held.
        case paused
        /// The allowance permits more bytes; the transfer queues for a permit.
        case awaitingPlace
    }

    /// Marks the exchange as having events: the worker visits it before the iteration ends.
    func touch() {
        guard !isTouched else { return }
        isTouched = true
        notes.note(self)
    }

    /// Whether the current response can be paused. HTTP/2 cannot: the bytes in flight of its stream would stay in
    /// memory.
    var canPause: Bool {
        guard case .stored = body, hold == .none else { return false }
        return !isHTTP2
    }

    /// Whether the allowance is used up. A complete body ends instead of pausing.
    var isHeld: Bool {
        guard case .stored(let writer) = body, !writer.isFull else { return false }
        return writer.received >= transfer.allowedLength
    }

    /// Bounds the kernel's receive buffer while the allowance is small. It is bounded before the first byte only,
    /// because a buffer that has grown does not shrink.
    func fitReceiveBuffer() {
        guard !isHTTP2, case .stored(let writer) = body else { return }
        let allowed = transfer.allowedLength
        if allowed == .max, writer.received == 0 {
            receiveBuffer?.release()
        } else if allowed - writer.received >= Self.unboundedBytes {
            receiveBuffer?.releaseIfBounded()
        } else if writer.received == 0 {
            receiveBuffer?.bound()
        }
    }

    /// With an allowance of this many bytes ahead, the reader keeps up, and the full receive window is useful.
    private static let unboundedBytes: Int64 = 512 << 10

    /// Whether the write callback must refuse bytes: libcurl then pauses, keeps them and stops reading.
    ///
    /// This is the only mechanism that stops a transfer over HTTP/1.1. `curl_easy_pause` inside a callback would make
    /// libcurl 7.88 read once more and keep those bytes in addition.
    func takesNothing(at now: Instant) -> Bool {
        guard !isHTTP2, case .stored(let writer) = body, !writer.isFull else { return false }
        let isStopped = hold != .none || isHeld || rest.map { $0 > now } ?? false
        if isStopped {
            isShut = true
            touch()
        }
        return isStopped
    }

    /// Flushes the body and stops receiving. False if the sink failed; then the worker ends the transfer.
    func pause(at now: Instant) -> Bool {
        guard flush() else { return false }
        hold = .paused
        timers.pause(at: now)
        return true
    }

    /// Resumes after a pause. The code states whether libcurl could deliver the bytes that it had kept.
    func goOn(at now: Instant) -> CURLcode {
        hold = .none
        timers.goOn(at: now)
        return setValve(at: now)
    }

    /// Opens or shuts the flow according to rate limit, pause and allowance.
    ///
    /// HTTP/1.1 is only opened here; it is shut by `takesNothing`. HTTP/2 is shut and opened here, by the rate limit
    /// alone. The code is that of libcurl's delivery of kept bytes.
    @discardableResult
    func setValve(at now: Instant) -> CURLcode {
        touch()
        if let until = rest, until <= now { rest = nil }
        let isToBeShut = rest != nil || !isHTTP2 && (hold != .none || isHeld)
        guard isToBeShut != isShut, isHTTP2 || !isToBeShut else { return CURLE_OK }
        // Set before the call, because the call may deliver bytes, and those may shut the flow again.
        isShut = isToBeShut
        return curl_easy_pause(easy, isToBeShut ? CURLPAUSE_RECV : CURLPAUSE_CONT)
    }

    /// Changes the rate limit and recomputes a wait that is in progress.
    func setRate(_ bytesPerSecond: Int64?, at now: Instant) {
        let until = rateLimit.change(to: bytesPerSecond, at: now) ?? now
        guard rest != nil else { return }
        rest = until
        timers.arrived(at: until)
        touch()
    }

    /// Waits after `bytes` for as long as the rate limit requires.
    func throttle(_ bytes: Int, _ now: Instant) {
        guard let until = rateLimit.took(bytes, at: now) else { return }
        rest = until
        timers.arrived(at: until)
        setValve(at: now)
    }

    /// The next time when the worker must visit the exchange; nil: none. A paused exchange has no timers.
    var nextDue: Instant? {
        guard hold == .none else { return nil }
        return [timers.next?.at, rest].compactMap(\.self).min()
    }

    /// Whether the current response uses HTTP/2; false before its status line.
    var isHTTP2: Bool { collector.version.hasPrefix("2") }

    /// Whether the current request is, as far as is known, a stream of a connection with other streams. Cutting it must
    /// not close that connection.
    var mayBeStream: Bool {
        guard timers.isConnected else { return false }
        return clock.isAnswered ? isHTTP2 : url.scheme == .https && !isHTTP1Only
    }

    /// Lowers the wanted length of the body to `bytes`.
    func shorten(to bytes: Int64) {
        guard case .stored(var writer) = body else { return }
        guard bytes < .max, writer.shorten(to: bytes) else { return }
        isCut = true
        body = .stored(writer)
    }

    /// Whether every wanted byte is stored and the rest of the body is to be cut off with its stream or connection.
    var isCutShort: Bool {
        guard isCut, case .stored(let writer) = body else { return false }
        return writer.isSatisfied
    }
}
