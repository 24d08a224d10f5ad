import CacheCore
import TestChance

/// Actions of the upstream.
extension FillLedgerModel {
    /// Advances a fill by one step: its head, some bytes, or its end.
    func proceed(_ id: FillLedger.FillID, mayBreak: Bool) {
        guard let fill = fills[id] else { return }
        if fill.isCut || (mayBreak && Int.random(in: 0..<6, using: &random) == 0) { return end(id, breaks: true) }
        if fill.isDescribing { return describe(id, fill) }
        guard !fill.isPaused else { return }
        guard fill.position < min(fill.end, length) else { return self.end(id, breaks: false) }
        let end = min(fill.storableEnd, length)
        let position = fill.position + Int64.random(in: 1...(end - fill.position), using: &random)
        // The punch of an evicting range also erases bytes written there.
        let gone = ByteRangeSet(evicting.joined())
        for byte in fill.position..<position {
            isOnDisk[Int(byte)] = gone.run(containing: byte) == nil || isOnDisk[Int(byte)]
            isNobodys[Int(byte)] = !isOnDisk[Int(byte)]
        }
        fills[id]?.position = position
        check(
            !hasRanges || position <= fill.reach.upperBound,
            "bytes up to \(position) stored beyond the claim \(fill.window)")
        perform(ledger.arrived(id, upTo: position))
        ledger.orphan(gone.runs(in: fill.position..<position))
        sweep()
    }

    private func describe(_ id: FillLedger.FillID, _ fill: Fill) {
        let notified = tellsLength ? length : nil
        guard let asked = fill.asked else {
            perform(ledger.confirmed(length: notified))
            fills[id] = nil
            return perform(ledger.completed(id))
        }
        guard !hasRanges || asked.lowerBound < length else {
            fills[id] = nil
            return perform(ledger.broke(id, with: .rangeNotSatisfiable(length: length), isWorthRetrying: false))
        }
        let window = hasRanges ? asked.clamped(to: 0..<length) : 0..<(notified ?? .max)
        fills[id]?.window = window
        fills[id]?.position = window.lowerBound
        fills[id]?.end = window.upperBound
        perform(
            ledger.began(
                id, window: window, length: notified, acceptsRanges: hasRanges, firstByte: .milliseconds(300),
                isMultiplexed: isMultiplexed))
    }

    private func end(_ id: FillLedger.FillID, breaks: Bool) {
        guard let fill = fills.removeValue(forKey: id) else { return }
        guard breaks else {
            perform(ledger.completed(id))
            return sweep()
        }
        let isRetryable = Int.random(in: 0..<8, using: &random) > 0
        let code: CacheError.Code = fill.isCut ? .cancelled : .upstreamUnreachable()
        perform(ledger.broke(id, with: code, isWorthRetrying: isRetryable))
        sweep()
    }
}

extension FillLedgerModel.Fill {
    /// The requested range of an opening; nil for any other fill.
    fileprivate var asked: ByteRange? {
        switch fillRequest {
        case .opening(.closed(let range)): range
        case .opening(.from(let first)): first..<Int64.max
        default: nil
        }
    }
}
