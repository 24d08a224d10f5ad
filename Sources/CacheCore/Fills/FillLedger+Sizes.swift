/// Reasons for the sizes of requests, as `/v1/explain` shows them.
extension FillLedger {
    /// The reason for the size of a request.
    package enum SizeReason: String, Hashable, Sendable, CaseIterable {
        /// The reader stated the range.
        case statedRange
        /// The reader stated no end; flow control limits the transfer to the reader's exposure.
        case openEnd
        /// The reader stated no end and the transfer cannot be paused; the reader's pace limits the window.
        case readerPace
        /// The window has the largest size of the origin.
        case largestWindow
        /// Cached bytes follow.
        case cachedBytes
        /// Bytes of another fill in flight follow.
        case runningFill
        /// An evicting range follows.
        case eviction
        /// The upstream sends the asset in one transfer only.
        case wholeAsset
        /// The request asks whether the stored generation is still current.
        case confirmation
        /// The range is expected to contain the index of a media file.
        case anticipatedIndex
    }

    /// The reason for the end of a window; `limit` is the largest end that the reader's demand permits.
    func reason(for window: ByteRange, limit: Int64, of reader: Reader) -> SizeReason {
        let end = window.upperBound
        if end < limit {
            if evicting.run(containing: end) != nil { return .eviction }
            if extents.run(containing: end) != nil { return .cachedBytes }
            if fills.contains(where: { $0.window.lowerBound == end && !$0.window.isEmpty }) { return .runningFill }
            return reader.readAhead.demand == .stated ? .largestWindow : .readerPace
        }
        if reader.readAhead.demand == .stated { return .statedRange }
        return hasFlowControl ? .openEnd : .readerPace
    }

    /// The reason for the size of a request without a planned window.
    func reason(for fillRequest: FillRequest, of reader: Reader?) -> SizeReason {
        switch fillRequest {
        case .confirmation: return .confirmation
        case .whole: return .wholeAsset
        case .opening, .window:
            if reader?.readAhead.demand == .stated { return .statedRange }
            return hasFlowControl ? .openEnd : .readerPace
        }
    }
}
