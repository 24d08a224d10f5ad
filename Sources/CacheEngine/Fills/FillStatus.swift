package import CacheCore

/// How far a fill is on its way.
struct FillProgress: Sendable {
    var stage: TransferStage
    var priority: TransferPriority
    /// Failures in a row before it.
    var attempt: Int
    var startedAt: Timestamp
    /// Who answers; nil before the answer.
    var address: String?
    var httpVersion: String?
    var bytesPerSecond: Int64
    /// Whether a second request for it is under way, because the first one was late.
    var isHedged = false
}

/// A fill under way, as administrators see it.
package struct FillStatus: Sendable {
    package enum Kind: String, Sendable, CaseIterable {
        case opening, window, whole, confirmation
    }

    package var number: UInt64
    package var assetID: AssetID
    package var key: String
    package var origin: String
    package var kind: Kind
    /// The bytes it brings, to `Int64.max` where their end is not known; nil where there are none, or only the upstream
    /// can say.
    package var range: ByteRange?
    /// The next byte it brings.
    package var position: Int64
    package var bytesPerSecond: Int64
    /// The readers that want bytes it has yet to bring.
    package var readers: Int
    package var stage: TransferStage
    package var priority: TransferPriority
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
    package init(_ wish: FillLedger.Wish) {
        switch wish {
        case .opening: self = .opening
        case .confirmation: self = .confirmation
        case .window: self = .window
        case .whole: self = .whole
        }
    }
}

extension FillStatus {
    /// How the fill of that number stands now.
    init(number: UInt64, _ fill: FillTransfer) {
        let (target, standing) = fill.asset.look { ($0.target, $0.ledger.standing(of: fill.fill)) }
        let progress = fill.progress
        let range = standing?.window ?? fill.wish.range
        self.init(
            number: number, assetID: target.id, key: target.key, origin: target.originName, kind: Kind(fill.wish),
            range: range, position: standing?.window == nil ? range?.lowerBound ?? 0 : standing?.position ?? 0,
            bytesPerSecond: progress.bytesPerSecond, readers: standing?.readers ?? 0, stage: progress.stage,
            priority: progress.priority, attempt: progress.attempt, address: progress.address,
            httpVersion: progress.httpVersion, startedAt: progress.startedAt, isHedged: progress.isHedged)
    }
}

extension FillLedger.Wish {
    /// The bytes it names itself.
    package var range: ByteRange? {
        switch self {
        case .opening(.closed(let range)), .window(let range): range
        case .opening(.from(let first)): first..<Int64.max
        case .opening(.suffix), .confirmation: nil
        case .opening(.whole), .whole: 0..<Int64.max
        }
    }
}
