/// Flow control: a read without a stated end is one request for all bytes that may be wanted, and its transfer pauses
/// at the reader's exposure (HTTP/1.1). This bounds the bytes wasted by a disconnect, without a round trip for each
/// window.
///
/// Such a fill claims the bytes up to its allowance plus the overshoot of a transfer. The bytes after its claim are
/// free: another reader may have them requested, and then the first transfer ends where the second begins.
extension FillLedger {
    /// The first claim of an opening; nil if it depends on the response.
    func firstClaim(of fillRequest: FillRequest, for reader: Reader) -> ByteRange? {
        guard case .opening(.closed(let range)) = fillRequest else { return nil }
        return range.prefix(isFlowControlled(for: reader) ? settings.firstExposureBytes : settings.largestWindowBytes)
    }

    /// Whether flow control limits a transfer for the reader. It does not if the reader stated a range, unless it is a
    /// prefetch.
    func isFlowControlled(for reader: Reader) -> Bool {
        hasFlowControl && (reader.readAhead.demand != .stated || reader.priority == .prefetch)
    }

    /// The smallest claim of a flow-controlled fill, in bytes.
    var leastClaim: Int64 { max(1, settings.firstExposureBytes / 2) }

    /// The end of the claim of a fill that brings `body` and pauses at `allowance`.
    func claim(upTo allowance: Int64, in body: ByteRange) -> Int64 {
        min(body.upperBound, ByteRange(offset: allowance, length: settings.overshootBytes).upperBound)
    }

    /// Shortens the fill that could otherwise claim bytes from `offset` on, because another fill begins there.
    mutating func shorten(before offset: Int64) -> [Action] {
        let index = firstFill(beginningAfter: offset) - 1
        guard index >= 0, fills[index].canGrow, fills[index].end > offset else { return [] }
        fills[index].longestEnd = max(fills[index].longestEnd, fills[index].reach.upperBound)
        fills[index].end = max(offset, fills[index].window.upperBound)
        return [.shorten(fills[index].id, to: fills[index].end)]
    }

    /// The index of the flow-controlled fill that reaches `offset` next if its readers advance; nil if there is none.
    func growingFill(before offset: Int64) -> Int? {
        guard acceptsRanges != false else { return nil }
        let index = firstFill(beginningAfter: offset) - 1
        guard index >= 0, fills[index].canGrow, fills[index].end > offset else { return nil }
        let claimed = fills[index].window.upperBound
        return claimed == offset || claimed < offset && extents.contains(claimed..<offset) ? index : nil
    }

    /// Raises allowance and claim of the fill to the reader's exposure, in steps of at least a quarter of it.
    mutating func grow(_ index: Int, for wanted: ByteRange, of reader: Reader) -> [Action] {
        let fill = fills[index]
        let (claimed, allowed) = (fill.window.upperBound, fill.allowance)
        let exposure = reader.readAhead.exposure(at: wanted.lowerBound, roundTrip: roundTrip)
        // A fill ends where the next one begins, unless that is anticipated and not answered yet.
        let next = fills[(index + 1)...].first.flatMap { $0.window.lowerBound < fill.end ? $0 : nil }
        let bound = min(
            fill.end, evicting.run(startingFrom: claimed)?.lowerBound ?? .max, next?.window.lowerBound ?? .max)
        if let next, wanted.lowerBound >= fill.position, claimed >= bound - settings.overshootBytes {
            return next.isCut ? [] : cut([next])
        }
        let most = min(bound, limit(of: wanted))
        let target = min(most, ByteRange(offset: wanted.lowerBound, length: exposure).upperBound)
        guard target > allowed,
            target == most || target - allowed >= exposure / 4 || fill.position >= allowed
        else { return [] }
        let claim = claim(upTo: target, in: fill.window.lowerBound..<bound)
        // A transfer can overshoot its allowance, so it must pause before an evicting range by at least the overshoot.
        let allowance = bound < fill.end ? min(target, claim - settings.overshootBytes) : target
        guard allowance > allowed else { return [] }
        // A rate is measured only while the transfer may store bytes.
        if fill.position >= allowed { (fills[index].flowingSince, fills[index].flowingFrom) = (now, fill.position) }
        fills[index].window = fill.window.lowerBound..<max(claimed, claim)
        fills[index].allowance = allowance
        return [.allow(fill.id, upTo: allowance)]
    }

    /// Claims the rest of flow-controlled fills that are finished without readers.
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
