import CacheCore

extension RangeHeader.Spec {
    /// The window that the first request for an unknown asset asks for: the range as it is stated, or at most `limit` bytes
    /// of its beginning.
    func opening(limit: Int64 = .max) -> UpstreamRequest.Window {
        switch self {
        // An end far beyond any asset: not every server reads so many digits.
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
