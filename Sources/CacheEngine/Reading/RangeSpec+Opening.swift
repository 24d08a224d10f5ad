import CacheCore

extension RangeHeader.Spec {
    /// The window of the first upstream request for an unknown asset: the range as stated, or at most `limit` bytes
    /// from its beginning.
    ///
    /// Offsets are limited to `Int64.max - 1`, so that the window has an end. A suffix of length 0 becomes a request
    /// for the first byte, which brings the asset's description.
    func opening(limit: Int64 = .max) -> UpstreamRequest.Window {
        switch self {
        // An end far beyond any asset is omitted: some servers cannot parse so many digits.
        case .closed(let first, let last) where limit == .max && last >= 1 << 50: .from(min(first, .max - 1))
        case .closed(let first, let last):
            .closed(ByteRange(offset: min(first, .max - 1), length: min(last - first, limit - 1) + 1))
        case .from(let first) where limit == .max: .from(min(first, .max - 1))
        case .from(let first): .closed(ByteRange(offset: min(first, .max - 1), length: limit))
        case .suffix(let count) where limit == .max && count >= 1 << 50: .from(0)
        case .suffix(let count): count > 0 ? .suffix(min(count, limit)) : .closed(0..<1)
        }
    }
}
