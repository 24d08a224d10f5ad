import CacheCore

extension RangeHeader.Spec {
    /// The window that the first request for an unknown asset asks for, at most `limit` bytes of the range's beginning.
    func opening(limit: Int64) -> UpstreamRequest.Window {
        switch self {
        case .closed(let first, let last):
            .closed(ByteRange(offset: min(first, .max - 1), length: min(last - first, limit - 1) + 1))
        case .from(let first): .closed(ByteRange(offset: min(first, .max - 1), length: limit))
        case .suffix(let count): count > 0 ? .suffix(min(count, limit)) : .closed(0..<1)
        }
    }
}
