import CacheCore

/// The fill that a transfer performs, and the asset that it belongs to.
struct FillLocation: Sendable {
    let asset: OpenAsset
    let fill: FillLedger.FillID
    let fillRequest: FillLedger.FillRequest
}

extension FillLedger.FillRequest {
    /// The number of bytes that the request is known to bring; 0 if it is not known.
    var knownLength: Int64 {
        switch self {
        case .opening(.closed(let range)): range.length
        case .opening(.suffix(let count)): min(count, Self.mostForeseenBytes)
        case .window(let range): range.upperBound < .max ? range.length : 0
        case .opening(.whole), .opening(.from), .whole, .confirmation: 0
        }
    }

    /// The maximum reservation for a suffix of an asset of unknown length, in bytes.
    private static let mostForeseenBytes: Int64 = 1 << 20

    /// The bytes that the request is known to bring; nil if they are not known.
    var knownRun: ByteRange? {
        switch self {
        case .opening(.closed(let range)), .window(let range): range
        case .opening(.suffix), .opening(.whole), .opening(.from), .whole, .confirmation: nil
        }
    }

    /// Whether the request continues a known generation.
    var isContinuation: Bool {
        switch self {
        case .window: true
        case .opening, .whole, .confirmation: false
        }
    }

    /// Whether a hedge is worthwhile: only for a request of a window, which readers close to it wait for.
    var mayBeHedged: Bool {
        switch self {
        case .opening(.closed), .opening(.from), .opening(.suffix), .window: true
        case .opening(.whole), .whole, .confirmation: false
        }
    }
}
