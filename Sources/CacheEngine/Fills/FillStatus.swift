package import CacheCore

/// The progress of a fill's transfer.
struct FillProgress: Sendable {
    var stage: TransferStage
    var priority: TransferPriority
    /// The number of consecutive failures before this try.
    var attempt: Int
    var startedAt: Timestamp
    /// The address of the server that answered; nil before the response.
    var address: String?
    var httpVersion: String?
    var bytesPerSecond: Int64
    /// Whether a hedge was sent, because the first byte was late.
    var isHedged = false
}

/// A fill in progress, as the management API reports it.
package struct FillStatus: Sendable {
    /// The kind of the fill's request; see `FillLedger.FillRequest`.
    package enum Kind: String, Sendable, CaseIterable {
        case opening, window, whole, confirmation
    }

    package var number: UInt64
    package var assetID: AssetID
    package var key: String
    package var origin: String
    package var kind: Kind
    /// The bytes that the fill brings, up to `Int64.max` if their end is unknown. Nil if there are none, or if only the
    /// upstream knows them.
    package var range: ByteRange?
    /// The offset of the next byte.
    package var position: Int64
    package var bytesPerSecond: Int64
    /// The number of readers that want bytes the fill has yet to bring.
    package var readers: Int
    package var stage: TransferStage
    package var priority: TransferPriority
    /// The number of consecutive failures before this try.
    package var attempt: Int
    package var address: String?
    package var httpVersion: String?
    package var startedAt: Timestamp
    package var isHedged: Bool

    package init(
        number: UInt64, assetID: AssetID, key: String, origin: String, kind: Kind, range: ByteRange? = nil,
        position: Int64 = 0, bytesPerSecond: Int64 = 0, readers: Int = 0, stage: TransferStage = .queued,
        priority: TransferPriority = .live, attempt: Int = 0, address: String? = nil, httpVersion: String? = nil,
        startedAt: Timestamp, isHedged: Bool = false
    ) {
        self.number = number
        self.assetID = assetID
        self.key = key
        self.origin = origin
        self.kind = kind
        self.range = range
        self.position = position
        self.bytesPerSecond = bytesPerSecond
        self.readers = readers
        self.stage = stage
        self.priority = priority
        self.attempt = attempt
        self.address = address
        self.httpVersion = httpVersion
        self.startedAt = startedAt
        self.isHedged = isHedged
    }
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
        let progress = fill.progress
        let range = state?.window ?? fill.fillRequest.range
        self.init(
            number: number, assetID: target.id, key: target.key, origin: target.originName,
            kind: Kind(fill.fillRequest),
            range: range, position: state?.window == nil ? range?.lowerBound ?? 0 : state?.position ?? 0,
            bytesPerSecond: progress.bytesPerSecond, readers: state?.readers ?? 0, stage: progress.stage,
            priority: progress.priority, attempt: progress.attempt, address: progress.address,
            httpVersion: progress.httpVersion, startedAt: progress.startedAt, isHedged: progress.isHedged)
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
