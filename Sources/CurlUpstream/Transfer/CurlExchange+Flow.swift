import CCurl
import CacheCore

/// What lets bytes in and keeps them out: the rate, and pauses.
extension CurlExchange {
    /// Where a pause stands.
    enum Hold {
        case none
        case paused
        /// To go on, as soon as there is a place for it.
        case awaitingPlace
    }

    /// Something happened to it: the worker looks at it before the turn is over.
    func touch() {
        guard !isTouched else { return }
        isTouched = true
        notes.note(self)
    }

    /// Whether the present response can be paused: what HTTP/2 has in flight would lie in memory meanwhile.
    var canPause: Bool {
        guard case .stored = body, hold == .none else { return false }
        return !isHTTP2
    }

    /// Whether the transfer's allowance is used up. A body that is complete ends instead of pausing.
    var isHeld: Bool {
        guard case .stored(let writer) = body, !writer.isFull else { return false }
        return writer.received >= transfer.allowedLength
    }

    /// Bounds the kernel's receive buffer while the allowance is small.
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

    /// A transfer that may store so much at once has a reader who reads on.
    private static let unboundedBytes: Int64 = 512 << 10

    /// Whether bytes that libcurl hands over stay with it: it has stopped reading then.
    ///
    /// This is the only way in which a transfer over HTTP/1.1 is stopped. `curl_easy_pause` from inside a callback makes
    /// libcurl 7.88 read once more, and keep what it reads beside what it kept before.
    func takesNothing(at now: ContinuousClock.Instant) -> Bool {
        guard !isHTTP2, case .stored(let writer) = body, !writer.isFull else { return false }
        let isStopped = hold != .none || isHeld || rest.map { $0 > now } ?? false
        if isStopped {
            isShut = true
            touch()
        }
        return isStopped
    }

    /// Takes nothing more in; false where the sink failed and the transfer is to be ended.
    func pause(at now: ContinuousClock.Instant) -> Bool {
        guard flush() else { return false }
        hold = .paused
        timers.pause(at: now)
        return true
    }

    /// Takes bytes in again; the code says whether libcurl could hand over what it had kept.
    func goOn(at now: ContinuousClock.Instant) -> CURLcode {
        hold = .none
        timers.goOn(at: now)
        return setValve(at: now)
    }

    /// Lets bytes in where neither a rest, a pause nor the allowance keeps them out. Over HTTP/2 a rest stops the stream.
    @discardableResult
    func setValve(at now: ContinuousClock.Instant) -> CURLcode {
        touch()
        if let until = rest, until <= now { rest = nil }
        let isToBeShut = rest != nil || !isHTTP2 && (hold != .none || isHeld)
        guard isToBeShut != isShut, isHTTP2 || !isToBeShut else { return CURLE_OK }
        // Before the call: it may hand over bytes, and those may shut it again.
        isShut = isToBeShut
        return curl_easy_pause(easy, isToBeShut ? CURLPAUSE_RECV : CURLPAUSE_CONT)
    }

    func setRate(_ bytesPerSecond: Int64?, at now: ContinuousClock.Instant) {
        let until = rateLimit.change(to: bytesPerSecond, at: now) ?? now
        guard rest != nil else { return }
        rest = until
        timers.arrived(at: until)
        touch()
    }

    /// Rests after `bytes` for as long as the rate asks for.
    func throttle(_ bytes: Int, _ now: ContinuousClock.Instant) {
        guard let until = rateLimit.took(bytes, at: now) else { return }
        rest = until
        timers.arrived(at: until)
        setValve(at: now)
    }

    /// When to look at it again; nil where nothing comes due.
    var nextDue: ContinuousClock.Instant? {
        guard hold == .none else { return nil }
        return [timers.next?.at, rest].compactMap(\.self).min()
    }

    var isHTTP2: Bool { collector.version.hasPrefix("2") }

    /// Whether the present hop's request is a stream of a connection with others, as far as is known.
    var mayBeStream: Bool {
        guard timers.isConnected else { return false }
        return clock.isAnswered ? isHTTP2 : url.scheme == .https && !transfer.request.mayBePaused
    }

    /// Wants no more than `bytes` of the body.
    func shorten(to bytes: Int64) {
        guard case .stored(var writer) = body else { return }
        guard bytes < .max, writer.shorten(to: bytes) else { return }
        isCut = true
        body = .stored(writer)
    }

    /// Whether every wanted byte is here, and the rest of the body is discarded with its stream or connection.
    var isCutShort: Bool {
        guard isCut, case .stored(let writer) = body else { return false }
        return writer.isSatisfied
    }
}
