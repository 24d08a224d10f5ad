package import CacheCore

/// The progress of a fill's transfer.
package struct FillProgress: Sendable {
    package var stage = TransferStage.queued
    package var priority = TransferPriority.live
    /// The number of consecutive failures before this try.
    package var attempt = 0
    package var startedAt: Timestamp
    /// The address of the server that answered; nil before the response.
    package var address: String?
    package var httpVersion: String?
    package var bytesPerSecond: Int64 = 0
    /// The base URL of the node of the fleet that is asked in place of the upstream; nil: the upstream.
    package var peer: String?
    /// Whether a hedge was sent, because the first byte was late.
    package var isHedged = false
}

/// A fill in progress, as the management API reports it.
package struct FillStatus: Sendable {
    /// The kind of the fill's request; see `FillLedger.FillRequest`.
    package enum Kind: String, Sendable, CaseIterable {
        case opening, window, whole, confirmation
    }

    package let number: UInt64
    package let assetID: AssetID
    package let key: String
    package let origin: String
    package let kind: Kind
    /// The bytes that the fill brings, up to `Int64.max` if their end is unknown. Nil if there are none, or if only the
    /// upstream knows them.
    package var range: ByteRange?
    /// The offset of the next byte.
    package var position: Int64 = 0
    /// The number of readers that want bytes the fill has yet to bring.
    package var readers = 0
    package let progress: FillProgress
}

extension FillStatus.Kind {
    package init(_ fillRequest: FillLedger.FillRequest) {
        switch fillRequest {
        case .opening: self = .opening
        case .confirmation: self = .confirmation
        case .window: self = .window
        case .whole: self = .whole
        }
    }
}

extension FillStatus {
    /// The current status of a fill.
    init(number: UInt64, _ fill: FillTransfer) {
        let (target, state) = fill.asset.look { ($0.target, $0.ledger.state(of: fill.fill)) }
        let range = state?.window ?? fill.fillRequest.range
        self.init(
            number: number, assetID: target.id, key: target.key, origin: target.originName,
            kind: Kind(fill.fillRequest), range: range,
            position: state?.window == nil ? range?.lowerBound ?? 0 : state?.position ?? 0,
            readers: state?.readers ?? 0, progress: fill.progress)
    }
}

extension FillLedger.FillRequest {
    /// The bytes that the request itself names; nil: none, or a range that only the upstream knows.
    package var range: ByteRange? {
        switch self {
        case .opening(.closed(let range)), .window(let range): range
        case .opening(.from(let first)): first..<Int64.max
        case .opening(.suffix), .confirmation: nil
        case .opening(.whole), .whole: 0..<Int64.max
        }
    }
}
