import CacheCore

/// Which fill of which asset a transfer carries out.
struct FillPlace: Sendable {
    let asset: OpenAsset
    let fill: FillLedger.FillID
    let wish: FillLedger.Wish
}

extension FillLedger.Wish {
    /// How many bytes it is known to bring.
    var knownLength: Int64 {
        switch self {
        case .opening(.closed(let range)): range.length
        case .opening(.suffix(let count)): min(count, Self.mostForeseenBytes)
        case .window(let range): range.upperBound < .max ? range.length : 0
        case .opening(.whole), .opening(.from), .whole, .confirmation: 0
        }
    }

    /// No more than this is reserved for a suffix of an asset of unknown length.
    private static let mostForeseenBytes: Int64 = 1 << 20

    /// Which bytes it is known to bring.
    var knownRun: ByteRange? {
        switch self {
        case .opening(.closed(let range)), .window(let range): range
        case .opening(.suffix), .opening(.whole), .opening(.from), .whole, .confirmation: nil
        }
    }

    /// Whether a second request for it may be worth its while: one for a window, with somebody near to it.
    var mayBeHedged: Bool {
        switch self {
        case .opening(.closed), .opening(.from), .opening(.suffix), .window: true
        case .opening(.whole), .whole, .confirmation: false
        }
    }
}
