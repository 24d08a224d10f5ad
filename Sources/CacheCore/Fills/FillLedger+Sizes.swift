extension FillLedger {
    /// Why a request has the size that it has.
    package enum SizeReason: String, Hashable, Sendable, CaseIterable {
        /// The reader stated the range.
        case statedRange
        /// The reader stated no end; flow control holds the transfer at what the reader is exposed to.
        case openEnd
        /// The reader stated no end, and the transfer cannot be paused: what the reader's pace allows.
        case readerPace
        /// The largest window of the origin.
        case largestWindow
        /// Bytes that are on disk follow.
        case cachedBytes
        /// Bytes that another transfer brings follow.
        case runningFill
        /// Bytes that are being evicted follow.
        case eviction
        /// The upstream brings the asset in one transfer only.
        case wholeAsset
        /// It asks whether the stored generation is still the upstream's.
        case confirmation
    }

    /// Why a window ends where it does.
    func reason(for window: ByteRange, limit: Int64, of reader: Reader) -> SizeReason {
        let end = window.upperBound
        if end < limit {
            if leaving.run(containing: end) != nil { return .eviction }
            if extents.run(containing: end) != nil { return .cachedBytes }
            if fills.contains(where: { $0.window.lowerBound == end && !$0.window.isEmpty }) { return .runningFill }
            return reader.readAhead.demand == .stated ? .largestWindow : .readerPace
        }
        if reader.readAhead.demand == .stated { return .statedRange }
        return hasFlowControl ? .openEnd : .readerPace
    }

    func reason(for wish: Wish, of reader: Reader?) -> SizeReason {
        switch wish {
        case .confirmation: return .confirmation
        case .whole: return .wholeAsset
        case .opening, .window:
            if reader?.readAhead.demand == .stated { return .statedRange }
            return hasFlowControl ? .openEnd : .readerPace
        }
    }
}
