/// Pure state machine for one generation: extents, fills in flight, readers and leases.
///
/// Each mutation returns the actions that its owner must perform. The ledger does no I/O and has no clock: the owner
/// sets `now` before a call. Invariants while ranges are accepted: the windows of `fills` do not overlap, and no fill
/// begins that would write to an evicting range.
package struct FillLedger: Sendable {
    /// Identifies a reader, from `join` to `leave`.
    package struct ReaderID: Hashable, Sendable { package let number: UInt64 }
    /// Identifies a fill, from `.start` to `completed`, `broke` or `renewed`.
    package struct FillID: Hashable, Sendable { package let number: UInt64 }
    /// Identifies a lease, from `lease` to `end`.
    package struct LeaseID: Hashable, Sendable { package let number: UInt64 }

    /// The request of a fill to the upstream.
    package enum FillRequest: Hashable, Sendable {
        /// The first request for an unknown asset. The response head serves as the probe.
        case opening(UpstreamRequest.Window)
        /// A conditional request that asks whether the generation is still current at the upstream. The window is the
        /// `Range` of the request: if the generation has changed, the response is the first body of the next
        /// generation.
        case confirmation(UpstreamRequest.Window)
        /// Exactly these bytes.
        case window(ByteRange)
        /// The body from its first byte, because the upstream does not support ranges.
        case whole
    }

    /// An effect that the owner must perform after a mutation, in the order returned.
    package enum Action: Hashable, Sendable {
        /// Begin the transfer of a new fill.
        case start(FillID, Start)
        /// Cancel the transfer: no reader wants its bytes, or an administrator stopped it.
        case cut(FillID)
        /// Move the transfer to a more urgent class.
        case promote(FillID, TransferPriority)
        /// Permit the transfer to store bytes up to this offset of the asset. It pauses there until a later action
        /// permits more.
        case allow(FillID, upTo: Int64)
        /// End the transfer at this offset of the asset: another fill brings the bytes after it.
        case shorten(FillID, to: Int64)
        /// End the reader's wait with this outcome.
        case notify(ReaderID, WaitOutcome)
    }

    /// The parameters of a transfer that the owner must begin.
    package struct Start: Hashable, Sendable {
        package var fillRequest: FillRequest
        package var priority: TransferPriority
        /// The number of consecutive failures before this request; the backoff depends on it.
        package var attempt: Int
        /// Whether the request continues after a failed transfer.
        package var isRetry: Bool
        /// The time until the reader runs out of bytes.
        package var slack: Duration
        /// The bytes that the fill claims first; nil: as many as the response brings.
        package var claim: ByteRange?
        /// The reason for the size of the request.
        package var sizedBy: SizeReason
    }

    /// The state of a reader: served bytes, a wait or the end.
    package enum Presence: Hashable, Sendable {
        /// The asset is described and confirmed. The reader may call `want`.
        case described
        /// These bytes are on disk; the range begins at the reader's position.
        case bytes(ByteRange)
        /// The reader has passed all wanted bytes.
        case end
        /// No byte is available yet. The ledger will notify the reader.
        case pending
        /// No byte is available, and no fill is started for this reader. The code is the reason.
        case over(CacheError.Code)
    }

    /// The limits of one origin; all sizes in bytes.
    package struct Settings: Hashable, Sendable {
        /// The exposure of a new reader without a stated end, where transfers can be paused (HTTP/1.1).
        package var firstExposureBytes: Int64
        /// The size of such a reader's first window where transfers cannot be paused (HTTP/2).
        package var firstWindowBytes: Int64
        /// The largest window, and the largest distance between a transfer and its readers.
        package var largestWindowBytes: Int64
        /// The number of additional requests of one reader; real progress refills it. See `Attempts`.
        package var retries: Int
        /// A window without readers is finished if at most this much is missing.
        package var finishIfRemainingBytes: Int64
        /// Likewise if at most this percentage of the window is missing; nil: only the bytes count.
        package var finishIfRemainingPercent: Int?
        /// The largest number of cached bytes that one window fetches again in order to save a second request.
        package var gapMergeBytes: Int64
        /// The number of bytes that are fetched beyond the wanted range.
        package var speculativeBytes: Int64
        /// The largest piece that a reader sends before it calls `advance`. These bytes ahead of it are not evicted.
        package var pieceBytes: Int64
        /// The largest number of bytes that a transfer stores beyond its allowance.
        package var overshootBytes: Int64

        package init(
            firstExposureBytes: Int64 = 64 << 10, firstWindowBytes: Int64 = 2 << 20,
            largestWindowBytes: Int64 = 16 << 20, retries: Int = 3,
            finishIfRemainingBytes: Int64 = 0, finishIfRemainingPercent: Int? = nil, gapMergeBytes: Int64 = 0,
            speculativeBytes: Int64 = 0, pieceBytes: Int64 = 64 << 10, overshootBytes: Int64 = 16 << 10
        ) {
            self.largestWindowBytes = max(1, largestWindowBytes)
            self.firstWindowBytes = min(firstWindowBytes, self.largestWindowBytes)
            self.firstExposureBytes = min(firstExposureBytes, self.firstWindowBytes)
            self.retries = retries
            self.finishIfRemainingBytes = finishIfRemainingBytes
            self.finishIfRemainingPercent = finishIfRemainingPercent
            self.gapMergeBytes = gapMergeBytes
            self.speculativeBytes = speculativeBytes
            self.pieceBytes = pieceBytes
            self.overshootBytes = overshootBytes
        }
    }

    package let settings: Settings
    /// The uptime that the owner set last, from any fixed origin.
    package var now = Duration.zero
    /// The byte ranges on disk that readers may use.
    package internal(set) var extents: ByteRangeSet
    /// The number of removals from `extents`, by eviction, damage or loss.
    package internal(set) var losses: UInt64 = 0
    /// The length of the asset in bytes; nil while it is not known.
    package internal(set) var length: Int64?
    /// False: the upstream ignored ranges, or windows cannot be combined; one sequential transfer serves all readers.
    /// Nil: unknown.
    package internal(set) var acceptsRanges: Bool?
    /// Whether a response head has described the asset.
    package internal(set) var isDescribed: Bool
    /// Whether another transfer may add bytes to those on disk. False without a strong validator (RFC 9111 §3.4), and
    /// if the upstream contradicts itself: then one transfer brings all bytes.
    package internal(set) var canBeContinued = true
    /// Whether the bytes are kept after the last reader has left.
    package var keepsBytes = true
    /// Fills with a known window, ordered by its first byte. No two windows overlap while ranges are accepted.
    var fills: [Fill] = []
    /// Openings and confirmations in flight; readers wait for the response head.
    var metadataFills: [Fill] = []
    /// The readers that can cause fills. A reader of cached bytes only has a lease instead.
    var readers: [ReaderID: Reader] = [:]
    /// Bytes on disk that are being sent to readers of cached bytes only.
    var leases: [LeaseID: ByteRange] = [:]
    /// Evicting ranges: bytes that are being removed from the disk. No reader gets them and no fill writes them until
    /// `left`.
    var evicting = ByteRangeSet()
    /// Orphaned ranges: bytes in the file that belong to no extent, because they are damaged or came from an unwanted
    /// write. A fill in flight overwrites them, or `evictOrphaned` claims them for removal.
    var orphaned = ByteRangeSet()
    /// The smoothed time from a request to the first byte of the response; zero before the first measurement.
    package var roundTrip = Duration.zero
    /// Whether transfers can be paused (HTTP/1.1). If so, an open-ended read has one flow-controlled transfer;
    /// otherwise it has closed windows.
    package var hasFlowControl = false
    /// The failure of a fill that broke while no reader was present. It is charged to the next reader that continues
    /// here; nil: none, or another fill was started since.
    var unreadFailure: CacheError.Code?
    private var lastNumber: UInt64 = 0

    /// Creates the ledger of an asset without a description.
    package init(settings: Settings) {
        self.settings = settings
        extents = ByteRangeSet()
        isDescribed = false
    }

    /// Creates the ledger of a known generation.
    package init(
        settings: Settings, length: Int64?, acceptsRanges: Bool?, canBeContinued: Bool = true, extents: ByteRangeSet
    ) {
        self.settings = settings
        self.length = length
        self.acceptsRanges = canBeContinued ? acceptsRanges : false
        self.canBeContinued = canBeContinued
        self.extents = extents
        isDescribed = true
    }

    /// The number of readers and leases.
    package var readerCount: Int { readers.count + leases.count }
    /// The number of fills in flight, openings and confirmations included.
    package var fillCount: Int { fills.count + metadataFills.count }
    /// Whether every byte of the asset is on disk.
    package var isComplete: Bool { length.map { extents.byteCount == $0 } ?? false }
    /// Whether a 304 is useful. If no transfer may add bytes, a 304 would leave an incomplete asset incomplete, unless the
    /// transfer in flight completes it.
    package var isConfirmable: Bool { canBeContinued || isComplete || extents.isEmpty || isBeingCompleted }
    /// Whether one transfer in flight brings all missing bytes.
    private var isBeingCompleted: Bool {
        guard let length else { return false }
        let missing = extents.gaps(in: 0..<length)
        return fills.contains { fill in
            fill.answeredAt != nil && !fill.isCut && missing.allSatisfy { fill.prospect.clamped(to: $0) == $0 }
        }
    }
    /// Whether a reader is present, leases excluded.
    package var hasReaders: Bool { !readers.isEmpty }
    /// Whether all readers are prefetches, so that no client waits for the first byte.
    package var isPrefetched: Bool { readers.values.allSatisfy { $0.priority == .prefetch } }
    /// Whether a reader waits.
    package var hasWaiting: Bool { readers.values.contains { $0.isWaiting } }
    /// Whether `tick` can have an effect: a reader waits, or a carried transfer waits for its first reader.
    package var needsTime: Bool { hasWaiting || fills.contains { $0.keptUntil != nil } }

    /// A number that no reader, fill or lease of this ledger has had.
    mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }
}

extension FillLedger {
    /// A fill in flight.
    struct Fill {
        let id: FillID
        let fillRequest: FillRequest
        var priority: TransferPriority
        /// The claimed bytes; empty until the response to an opening names them. The claim of a flow-controlled fill
        /// grows as its readers advance.
        var window: ByteRange
        /// The end of the response. It lies beyond the claim while the claim of a flow-controlled fill can grow.
        var end: Int64
        /// The offset where the transfer pauses; `.max`: the fill is not flow-controlled. The transfer may overshoot
        /// it by `Settings.overshootBytes`; the claim includes the overshoot.
        var allowance = Int64.max
        /// Whether its readers may disconnect before the end. Without readers it is finished only if very little is
        /// missing.
        var isOpenEnded = false
        /// The offset of the next byte that the transfer brings.
        var position: Int64
        /// Whether the fill was begun without a reader. It is not cut when no reader waits.
        var isBehind = false
        /// Whether the fill brings bytes that no reader has requested yet. Until it is answered, it takes nothing from the
        /// fill before it, and its failure has no effect.
        var isAnticipated = false
        /// The uptime until which the fill is kept without readers: the readers that waited for it are about to join.
        /// Nil: not kept.
        var keptUntil: Duration?
        /// Whether a `.cut` was returned for it. No reader can rely on its bytes.
        var isCut = false
        /// The uptime of the response head; nil before it.
        var answeredAt: Duration?
        /// The start of the current uninterrupted storing: its uptime and its offset.
        var flowingSince = Duration.zero
        var flowingFrom: Int64 = 0
        /// The largest end before a `.shorten`. The transfer may write that far until it has processed the action.
        var longestEnd: Int64 = 0
        /// The number of bytes it has brought that were not on disk before.
        var progress: Int64 = 0
        /// The end of the request, if the response is small and ends before it and before the end of the asset; nil
        /// otherwise.
        var cutShortAt: Int64?

        /// The new bytes that are progress in a large window.
        private static let progressBytes: Int64 = 32 << 10

        /// Whether the fill has brought real progress to a reader: at least ``progressBytes``, or a sixteenth of the window if that
        /// is less. Bytes before `reached` do not count: the reader had them from an earlier generation.
        ///
        /// Without this minimum, an upstream that breaks off after a few bytes each time would be retried without end.
        func hasProgressed(beyond reached: Int64) -> Bool {
            let repeated = max(0, min(position, reached) - window.lowerBound)
            let new = progress - repeated
            return new > 0 && new >= min(Self.progressBytes, window.length / 16)
        }
        /// The claimed bytes that the fill has yet to bring.
        var remaining: ByteRange { min(position, window.upperBound)..<window.upperBound }
        /// The bytes that the fill has yet to bring if its readers read to the end.
        var prospect: ByteRange { min(position, end)..<max(min(position, end), end) }
        /// Whether flow control applies to the fill if its transfer can be paused.
        var mayBeHeldBack: Bool { isOpenEnded || priority == .prefetch }
        /// Whether it requests the whole body and has no response yet. Its response answers a confirmation, too.
        var isRepeatedWhole: Bool { fillRequest == .whole && answeredAt == nil && !isCut }
        /// Whether the claim can grow.
        var canGrow: Bool { window.upperBound < end && !isCut && !window.isEmpty }
        /// The bytes that the transfer may be writing, including those beyond an end that it has not processed yet.
        var reach: ByteRange { min(position, window.upperBound)..<max(window.upperBound, longestEnd) }

        /// The rate in bytes per second since the response head or the last pause; nil before 500 ms have passed.
        func rate(at now: Duration) -> Double? {
            guard answeredAt != nil, now - flowingSince >= .milliseconds(500) else { return nil }
            return Double(position - flowingFrom) / (now - flowingSince).inSeconds
        }

        /// Records the response head; `body` is the range that the response brings.
        mutating func began(at now: Duration, bringing body: ByteRange) {
            (window, end, position) = (body, body.upperBound, body.lowerBound)
            (answeredAt, flowingSince, flowingFrom) = (now, now, body.lowerBound)
        }
    }

    /// The failure of a fill that its reader has not reached yet.
    struct PendingFailure {
        let range: ByteRange
        let code: CacheError.Code
        /// The uptime when a patient reader repeats its request; nil: the failure ends the read.
        var until: Duration?
    }

    /// A reader: its demand, its wait and its read-ahead.
    struct Reader {
        var priority: TransferPriority
        /// The window of the first request if the asset is not known.
        let opening: UpstreamRequest.Window
        /// The wanted bytes from the reader's position on; nil until the reader has seen the description.
        var wanted: ByteRange?
        /// The lowest offset that the reader wants after `wanted`; nil: there is no later range.
        var comesBackTo: Int64?
        /// From the lowest to the highest byte that the reader has ever wanted.
        var span: ByteRange?
        /// Whether the reader must wait until the upstream confirms the generation.
        var needsConfirmation: Bool
        /// The uptime of the last `advance` or `want`.
        var movedAt = Duration.zero
        /// The uptime when the wait began; nil: the reader does not wait.
        var waitingSince: Duration?
        /// The longest single wait; nil: no limit.
        var waitLimit: Duration?
        /// The largest distance in bytes between the reader and a transfer without ranges.
        var maxLeadBytes: Int64
        /// Whether the reader was notified of a failure. No fill is started for it until it calls `presence` again.
        var isNotified = false
        /// Whether the reader gets bytes on disk and of fills in flight only: no fill is started for it.
        var isPassive = false
        /// The reason why no further fill is started for the reader; nil: fills are started.
        var dismissal: CacheError.Code?
        /// A failure of bytes ahead of the reader, reported when the reader reaches them, or of those for which a patient
        /// reader waits. No fill is started for these bytes.
        var pendingFailure: PendingFailure?
        var readAhead: ReadAhead
        /// The additional requests of the read.
        var attempts = Attempts()

        var isWaiting: Bool { waitingSince != nil }
    }
}

extension FillLedger.FillRequest {
    /// The first byte of the request; nil if it depends on the response.
    package var offset: Int64? { if case .window(let range) = self { range.lowerBound } else { nil } }

    /// The end of the requested bytes, `.max` if the request names none; nil if it depends on the response.
    var end: Int64? {
        switch self {
        case .window(let range), .opening(.closed(let range)), .confirmation(.closed(let range)): range.upperBound
        case .opening(.from), .confirmation(.from), .opening(.suffix), .confirmation(.suffix): .max
        case .opening, .confirmation, .whole: nil
        }
    }

    /// Whether readers wait for the response head, not for bytes.
    package var isDescription: Bool {
        switch self {
        case .opening, .confirmation: true
        case .window, .whole: false
        }
    }

    package var isOpening: Bool { if case .opening = self { true } else { false } }

    package var isConfirmation: Bool { if case .confirmation = self { true } else { false } }
}
