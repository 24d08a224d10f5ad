/// Flow control. A read without a stated end is one request for all that may be wanted, and its transfer pauses at the
/// reader's exposure (HTTP/1.1): the waste of a hang-up is bounded without a round trip for each window.
///
/// Such a fill claims the bytes up to its allowance and the overshoot of a transfer. The bytes behind its claim are free:
/// another reader may have them requested, and the first transfer ends where the second begins.
extension FillLedger {
    /// The first claim of an opening, if it is known before the response.
    func firstClaim(of wish: Wish, for reader: Reader) -> ByteRange? {
        guard case .opening(.closed(let range)) = wish else { return nil }
        return range.prefix(isFlowControlled(for: reader) ? settings.firstExposureBytes : settings.largestWindowBytes)
    }

    /// Whether a transfer for the reader is held back by flow control: not where the reader stated all that it brings.
    func isFlowControlled(for reader: Reader) -> Bool {
        hasFlowControl && (reader.readAhead.demand != .stated || reader.priority == .prefetch)
    }

    /// A flow-controlled fill claims at least this much.
    var leastClaim: Int64 { max(1, settings.firstExposureBytes / 2) }

    /// Where the claim ends of a fill of `body` that pauses at `allowance`.
    func claim(upTo allowance: Int64, in body: ByteRange) -> Int64 {
        min(body.upperBound, ByteRange(offset: allowance, length: settings.overshootBytes).upperBound)
    }

    /// Another fill begins at `offset`: one that could claim bytes from there on ends there.
    mutating func shorten(before offset: Int64) -> [Action] {
        let index = firstFill(beginningAfter: offset) - 1
        guard index >= 0, fills[index].canGrow, fills[index].end > offset else { return [] }
        fills[index].longestEnd = max(fills[index].longestEnd, fills[index].reach.upperBound)
        fills[index].end = max(offset, fills[index].window.upperBound)
        return [.shorten(fills[index].id, to: fills[index].end)]
    }

    /// The flow-controlled fill that comes to `offset` next, if its readers let it.
    func growingFill(before offset: Int64) -> Int? {
        guard acceptsRanges != false else { return nil }
        let index = firstFill(beginningAfter: offset) - 1
        guard index >= 0, fills[index].canGrow, fills[index].end > offset else { return nil }
        let claimed = fills[index].window.upperBound
        return claimed == offset || claimed < offset && extents.contains(claimed..<offset) ? index : nil
    }

    /// Raises the allowance and the claim to the reader's exposure, in steps of a quarter of it or more.
    mutating func grow(_ index: Int, for wanted: ByteRange, of reader: Reader) -> [Action] {
        let fill = fills[index]
        let (claimed, allowed) = (fill.window.upperBound, fill.allowance)
        let exposure = reader.readAhead.exposure(at: wanted.lowerBound, roundTrip: roundTrip)
        let bound = min(fill.end, leaving.run(startingFrom: claimed)?.lowerBound ?? .max)
        let most = min(bound, limit(of: wanted))
        let target = min(most, ByteRange(offset: wanted.lowerBound, length: exposure).upperBound)
        guard target > allowed,
            target == most || target - allowed >= exposure / 4 || fill.position >= allowed
        else { return [] }
        let claim = claim(upTo: target, in: fill.window.lowerBound..<bound)
        // A transfer cannot stop exactly before bytes that are being evicted.
        let allowance = bound < fill.end ? min(target, claim - settings.overshootBytes) : target
        guard allowance > allowed else { return [] }
        // A rate is measured over the time in which the transfer may store.
        if fill.position >= allowed { (fills[index].flowingSince, fills[index].flowingFrom) = (now, fill.position) }
        fills[index].window = fill.window.lowerBound..<max(claimed, claim)
        fills[index].allowance = allowance
        return [.allow(fill.id, upTo: allowance)]
    }

    /// Claims the rest of fills that are finished though nobody reads them.
    mutating func claimRest(of finished: [Fill]) -> [Action] {
        finished.compactMap { fill in
            guard let index = fills.firstIndex(where: { $0.id == fill.id }), fills[index].allowance < fills[index].end,
                fills[index].end < .max
            else { return nil }
            let end = fills[index].end
            fills[index].window = fill.window.lowerBound..<end
            fills[index].allowance = end
            return .allow(fill.id, upTo: end)
        }
    }
}
