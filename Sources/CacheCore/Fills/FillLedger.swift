/// Who fetches what of one generation, and who waits for it: the fill rules as a value.
///
/// It knows the extents, the fills in flight, the readers and the bytes that are just being evicted. Every change answers
/// with the actions its owner must carry out; the ledger itself does nothing, and knows the time only as it is told.
package struct FillLedger: Sendable {
    package struct ReaderID: Hashable, Sendable { package let number: UInt64 }
    package struct FillID: Hashable, Sendable { package let number: UInt64 }
    package struct LeaseID: Hashable, Sendable { package let number: UInt64 }

    /// What a fill asks the upstream for.
    package enum Wish: Hashable, Sendable {
        /// The first window of an asset nobody knows yet; its answer's head is the probe.
        case opening(UpstreamRequest.Window)
        /// Whether the generation is still the upstream's. The window is the `Range` of the request: where the generation has
        /// changed, the answer is the first body of the next one.
        case confirmation(UpstreamRequest.Window)
        /// Exactly these bytes.
        case window(ByteRange)
        /// The body from its first byte, because the upstream knows no ranges.
        case whole
    }

    package enum Action: Hashable, Sendable {
        case start(FillID, Start)
        /// Nobody wants what it brings any more.
        case cut(FillID)
        case promote(FillID, TransferPriority)
        /// Its transfer may store bytes up to this offset, and pauses there until a later action allows more.
        case allow(FillID, upTo: Int64)
        /// Its transfer ends at this offset: another fill brings the bytes behind it.
        case shorten(FillID, to: Int64)
        case tell(ReaderID, WaitOutcome)
    }

    /// A transfer to begin.
    package struct Start: Hashable, Sendable {
        package var wish: Wish
        package var priority: TransferPriority
        /// Failures in a row, for the backoff.
        package var attempt: Int
        /// Whether it goes on where a transfer broke.
        package var isRetry: Bool
        /// How long until its reader runs out of bytes.
        package var patience: Duration
        /// The bytes that it claims at first; nil: as many as the request brings.
        package var claim: ByteRange?
        package var sizedBy: SizeReason
    }

    /// How far a reader is served.
    package enum Presence: Hashable, Sendable {
        /// The asset is described and confirmed; the reader may say what it wants.
        case described
        /// These bytes, from the reader's position on, are on disk.
        case bytes(ByteRange)
        /// All that was wanted has been read.
        case end
        /// Nothing yet: the reader will be told.
        case pending
        /// Nothing, and nothing is fetched for this reader any more.
        case over(CacheError.Code)
    }

    package struct Settings: Hashable, Sendable {
        /// How far a paused transfer is ahead of a reader that has just begun and stated no end.
        package var firstExposureBytes: Int64
        /// The size of such a reader's first window where transfers cannot be paused (HTTP/2).
        package var firstWindowBytes: Int64
        /// The largest window, and the most that a transfer may run ahead of its readers.
        package var largestWindowBytes: Int64
        /// Failures in a row, without a byte in between, that are tried again.
        package var retries: Int
        /// A window whose last reader has gone is brought to its end where no more than this is missing.
        package var finishIfRemainingBytes: Int64
        /// Likewise where no more than this part of it, in percent, is missing.
        package var finishIfRemainingPercent: Int?
        /// At most so many bytes that are on disk are fetched again with a window, where that saves a second one.
        package var gapMergeBytes: Int64
        /// How much is fetched beyond what a reader wants.
        package var speculativeBytes: Int64
        /// The most that a reader sends before it says that it has advanced: so much ahead of it is not evicted.
        package var pieceBytes: Int64
        /// The most that a transfer stores beyond its allowance.
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
    /// The time as the owner last told it, from any fixed moment on.
    package var now = Duration.zero
    package internal(set) var extents: ByteRangeSet
    /// How often bytes that were on disk were given up or lost.
    package internal(set) var losses: UInt64 = 0
    /// Nil while the end is not known.
    package internal(set) var length: Int64?
    /// False: ranges were ignored, or windows cannot be joined; one sequential transfer serves everybody.
    package internal(set) var acceptsRanges: Bool?
    package internal(set) var isDescribed: Bool
    /// Whether another transfer may bring more bytes beside those on disk. False without a strong validator (RFC 9111
    /// §3.4), and where the upstream contradicts itself: all bytes come in one transfer then.
    package internal(set) var canBeContinued = true
    /// Those of known bytes, by where they begin. No two overlap while ranges are accepted.
    var fills: [Fill] = []
    /// Openings and confirmations under way.
    var questions: [Fill] = []
    var readers: [ReaderID: Reader] = [:]
    /// Bytes on disk that are being sent to readers who want nothing else.
    var leases: [LeaseID: ByteRange] = [:]
    /// Bytes that are being taken off the disk: neither present nor to be fetched until that is done.
    var leaving = ByteRangeSet()
    /// Bytes on the disk that are nobody's: not what they were, or brought where they were not wanted. A fill in flight writes
    /// them anew, or they leave.
    var unclaimed = ByteRangeSet()
    /// How long the upstream takes from a request to the first byte, smoothed.
    package var roundTrip = Duration.zero
    /// Whether transfers can be paused (HTTP/1.1). Open-ended reads have one flow-controlled transfer then; else closed
    /// windows.
    package var hasFlowControl = false
    /// Failures in a row of what begins at a byte; under nil, of what begins where the upstream says.
    var failures: [Int64?: Int] = [:]
    private var lastNumber: UInt64 = 0

    /// A ledger for an asset that nobody has described yet.
    package init(settings: Settings) {
        self.settings = settings
        extents = ByteRangeSet()
        isDescribed = false
    }

    /// A ledger for a generation that is known.
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

    package var readerCount: Int { readers.count + leases.count }
    package var fillCount: Int { fills.count + questions.count }
    package var isComplete: Bool { length.map { extents.byteCount == $0 } ?? false }
    /// Whether a 304 is of use: where nothing can be continued, it would leave an incomplete asset incomplete.
    package var isConfirmable: Bool { canBeContinued || isComplete || extents.isEmpty }
    package var hasReaders: Bool { !readers.isEmpty }
    /// Whether all readers prefetch: nobody waits for the first byte.
    package var isPrefetched: Bool { readers.values.allSatisfy { $0.priority == .prefetch } }
    /// Whether a reader waits.
    package var hasWaiting: Bool { readers.values.contains { $0.isWaiting } }
    /// Whether something ends by time alone: a reader's wait, or a transfer without readers.
    package var needsTime: Bool { hasWaiting || fills.contains { $0.keptUntil != nil } }

    mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }
}

extension FillLedger {
    struct Fill {
        let id: FillID
        let wish: Wish
        var priority: TransferPriority
        /// The bytes it claims; empty until an opening's answer says which. A flow-controlled fill claims more as its
        /// readers advance.
        var window: ByteRange
        /// Where its response ends: beyond the claim while a flow-controlled fill can claim more.
        var end: Int64
        /// The offset at which its transfer pauses; `.max`: it is not flow-controlled. It may store an overshoot beyond that,
        /// which is claimed as well.
        var allowance = Int64.max
        /// Whether its readers may hang up before the end: then it is finished only where very little is missing.
        var isSpeculative = false
        /// The next byte it brings.
        var position: Int64
        /// Whether it was begun for nobody in particular, and is not cut when nobody waits.
        var isBehind = false
        /// Until when it is not cut though no reader wants it: those that waited for it are about to join.
        var keptUntil: Duration?
        /// Whether it was told to end: nobody can count on its bytes.
        var isCut = false
        /// When its answer began; nil before that.
        var answeredAt: Duration?
        /// Since when, and from where on, it stores without a pause.
        var flowingSince = Duration.zero
        var flowingFrom: Int64 = 0
        /// Where it was to end before it was told to end earlier.
        var longestEnd: Int64 = 0
        /// How many bytes it has brought that were not there.
        var progress: Int64 = 0

        /// Whether that is enough to forget earlier failures: who gives up after each few bytes is not asked for ever.
        var hasProgressed: Bool { progress > 0 && progress >= min(32 << 10, window.length / 16) }
        /// The claimed bytes that it has yet to bring.
        var remaining: ByteRange { min(position, window.upperBound)..<window.upperBound }
        /// The bytes it has yet to bring if its readers read on.
        var prospect: ByteRange { min(position, end)..<max(min(position, end), end) }
        /// Whether flow control holds it back where its transfer can be paused.
        var mayBeHeldBack: Bool { isSpeculative || priority == .prefetch }
        /// Whether it can claim more than it does.
        var canGrow: Bool { window.upperBound < end && !isCut && !window.isEmpty }
        /// The bytes it may be writing: a transfer that was told to end earlier has yet to hear of it.
        var reach: ByteRange { min(position, window.upperBound)..<max(window.upperBound, longestEnd) }

        /// Bytes per second since its answer began, or its last pause ended; nil while that is too short to tell.
        func rate(at now: Duration) -> Double? {
            guard answeredAt != nil, now - flowingSince >= .milliseconds(500) else { return nil }
            return Double(position - flowingFrom) / (now - flowingSince).inSeconds
        }

        /// Its answer has begun, with `body`.
        mutating func began(at now: Duration, bringing body: ByteRange) {
            (window, end, position) = (body, body.upperBound, body.lowerBound)
            (answeredAt, flowingSince, flowingFrom) = (now, now, body.lowerBound)
        }
    }

    struct Setback {
        let range: ByteRange
        let code: CacheError.Code
    }

    struct Reader {
        var priority: TransferPriority
        let opening: UpstreamRequest.Window
        /// What it wants, from its position on; nil until it has seen the description.
        var wanted: ByteRange?
        /// The first of all bytes that it will want after those; nil: it wants no more.
        var comesBackTo: Int64?
        /// From the first to the last byte it has ever wanted.
        var span: ByteRange?
        var needsConfirmation: Bool
        /// When it last moved on, or said what it wants.
        var movedAt = Duration.zero
        /// Since when it waits; nil: it does not.
        var waitingSince: Duration?
        /// How long it may wait at a time; nil: for ever.
        var waitLimit: Duration?
        /// How far ahead of it a transfer without ranges may run.
        var leashBytes: Int64
        /// It has been told of a failure, and nothing is fetched for it unless it asks again.
        var isTold = false
        /// Why nothing is fetched for it, whether it asks or not.
        var dismissal: CacheError.Code?
        /// What was given up while it was busy with bytes before it; it is told when it comes there.
        var setback: Setback?
        var readAhead: ReadAhead

        var isWaiting: Bool { waitingSince != nil }
    }
}

extension FillLedger.Wish {
    /// The byte it begins at; nil where only the upstream can say.
    package var place: Int64? { if case .window(let range) = self { range.lowerBound } else { nil } }

    /// Whether its answer's head is waited for.
    package var isDescription: Bool {
        switch self {
        case .opening, .confirmation: true
        case .window, .whole: false
        }
    }

    package var isOpening: Bool { if case .opening = self { true } else { false } }

    package var isConfirmation: Bool { if case .confirmation = self { true } else { false } }
}
