import CacheCore
import CacheStore
import Synchronization

/// One fill on its way: asks the upstream, judges the answer's head, puts the bytes into the asset's file, and tells the
/// asset of each step.
///
/// It may have two transfers under way, its legs: the first, and a hedge where the first byte is late. The first good head
/// wins; the other leg is cancelled, and nothing it does counts any more.
final class FillTransfer: Sendable {
    /// What is wanted of its legs; it may be said before there is one.
    struct Wishes: Hashable {
        var priority = TransferPriority.prefetch
        /// The offset of the asset up to which bytes may be stored; `.max`: no limit.
        var allowance = Int64.max
        /// Where the body begins; nil before its head.
        var start: Int64?
        /// The offset of the asset where the body is to end, where that is earlier than requested.
        var end: Int64?
        var isCancelled = false
    }

    struct Leg {
        var permit: OriginHealth.Permit
        let isHedge: Bool
        var transfer: (any Transfer)?
        /// What the transfer knows of the wishes.
        var told: Wishes
        /// When it left the queue.
        var startedAt: Duration?
        var isCancelled = false
        /// Why it was cancelled, where that is a failure.
        var refusal: CacheError?
        /// Whether what it showed of its address has been told.
        var isSettled = false
        /// Whether it brought a mirror's answer that cannot be believed.
        var isSkip = false
        var isOver = false
    }

    struct Body {
        let file: SparseFile
        let start: Int64
        /// Nil while the end is not known.
        var end: Int64?
        /// Up to where the bytes from its start were on disk when it began.
        let known: Int64
        var position: Int64

        /// Ends at `offset`, or at its position where it is past that.
        mutating func end(at offset: Int64) { end = min(end ?? .max, max(offset, position)) }
    }

    struct State {
        var attempt = 0
        var patience = Duration.zero
        var startedAt: Timestamp?
        var reservation: Int64 = 0
        /// The offset of the asset up to which space is reserved; nil: none is, as its length cannot be foreseen.
        var reservedEnd: Int64?
        var isPrefetch = false
        var wishes = Wishes()
        /// Whether a thread is telling the legs what is wanted.
        var isTelling = false
        /// Whose bytes it fetches, and where they may be had.
        var target: AssetTarget?
        var addresses: [String] = []
        var legs: [Leg] = []
        /// The leg whose head is just being judged.
        var judging: Int?
        /// The leg whose body is taken.
        var winner: Int?
        var head: UpstreamHead?
        /// What the body brings, once its head is judged good.
        var body: Body?
        var meter = RateMeter()
        /// Whether it brings another generation than it was begun for.
        var hasMoved = false
        /// Whether its requested bytes are counted when it ends: flow control decides how many they are.
        var isCountedAtEnd = false
        /// Whether it asks without a `Range`.
        var isPlain = false
        var isOver = false
    }

    private let place: Mutex<FillPlace>
    let context: EngineContext
    /// What it goes on from.
    let retry: FillRetry
    let state = Mutex(State())

    var asset: OpenAsset { place.withLock { $0.asset } }
    var fill: FillLedger.FillID { place.withLock { $0.fill } }
    var wish: FillLedger.Wish { place.withLock { $0.wish } }

    init(for place: FillPlace, retry: FillRetry = FillRetry()) {
        self.place = Mutex(place)
        context = place.asset.context
        self.retry = retry
    }

    /// Its answer has begun another generation: it brings bytes of that one, which it holds.
    func move(to next: FillPlace) {
        state.withLock { $0.hasMoved = true }
        let before = place.withLock { place in
            defer { place = next }
            return place.asset
        }
        context.openAssets.release(before)
    }

    var hasMoved: Bool { state.withLock { $0.hasMoved } }
    /// Failures in a row before it.
    var attempt: Int { state.withLock { $0.attempt } }
    var isPlain: Bool { state.withLock { $0.isPlain } }
    var priority: TransferPriority { state.withLock { $0.wishes.priority } }

    /// Reserves the space for the bytes that it claims at first, then asks the upstream.
    func begin(_ start: FillLedger.Start) {
        context.openAssets.retain(asset)
        context.fillBook.enter(self)
        let bytes = start.claim?.length ?? wish.knownLength
        let run = start.claim ?? wish.knownRun
        let now = context.wallClock.now()
        state.withLock { state in
            state.attempt = start.attempt
            state.patience = start.patience
            state.startedAt = now
            state.reservation = bytes
            state.reservedEnd = run?.upperBound ?? wish.window.firstByte
            state.wishes.priority = min(state.wishes.priority, start.priority)
            state.isPrefetch = start.priority == .prefetch
        }
        // The asset counts what it tries again itself; it does not know of a try that is free.
        if start.attempt == 0, retry.isFree { context.counters.fillRetried(origin: asset.target.originName) }
        let expected = run.map { (run: $0, asset: asset.id) }
        context.space.reserve(bytes, expecting: expected) { [self] in launch() }
    }

    /// Asks the first address that may be asked.
    private func launch() {
        let target = asset.target
        let addresses = context.addresses(of: target)
        let isPlain = retry.isPlain || wish.isOpening && context.health.refusesRanges(target)
        let (attempt, isCancelled) = state.withLock { state in
            state.target = target
            state.isPlain = isPlain
            state.addresses = addresses
            return (state.attempt, state.wishes.isCancelled)
        }
        guard !isCancelled else {
            return refuse(Self.unwanted)
        }
        if attempt == 0, !retry.isAgain { context.health.asked(target) }
        do throws(CacheError) {
            let permit = try context.health.admit(
                target, of: addresses.count, from: retry.address % addresses.count, without: retry.skipped)
            send(permit, to: addresses[permit.address], delay: delay(beforeAttempt: attempt), isHedge: false)
        } catch {
            refuse(error)
        }
    }

    static let unwanted = CacheError(.cancelled, "Nobody wants these bytes any more.")

    private func delay(beforeAttempt attempt: Int) -> Duration {
        if let delay = retry.delay { return delay }
        return attempt == 0 ? .zero : Backoff().delay(beforeRetry: attempt - 1, chance: context.chance.uniform())
    }

    /// Queues one leg.
    func send(_ permit: OriginHealth.Permit, to url: String, delay: Duration, isHedge: Bool) {
        let (number, wishes, patience) = state.withLock { state in
            let told = Wishes(priority: state.wishes.priority)
            state.legs.append(Leg(permit: permit, isHedge: isHedge, told: told))
            return (state.legs.count - 1, told, state.patience)
        }
        let isPlain = state.withLock { $0.isPlain }
        var request = asset.upstreamRequest(
            for: wish, priority: wishes.priority, delay: delay, isPlain: isPlain)
        request.url = url
        request.patience = patience
        request.mayBePaused = request.window == .whole
        let transfer = context.upstream.start(request, delivering: FillLeg(of: self, number: number))
        state.withLock { state in
            if !state.legs[number].isOver { state.legs[number].transfer = transfer }
        }
        tellLegs()
    }

    // MARK: What is wanted of it

    func cancel() { want { $0.isCancelled = true } }

    func promote(to priority: TransferPriority) { want { $0.priority = min($0.priority, priority) } }

    /// Stores bytes up to `offset`, once the space for them is reserved, and pauses there. The first allowance is a limit;
    /// later ones only raise it, so that their order does not matter.
    func allow(upTo offset: Int64) {
        let range = state.withLock { state -> ByteRange? in
            let reserved = state.isPlain ? nil : state.reservedEnd
            if state.wishes.allowance == .max { state.wishes.allowance = min(offset, reserved ?? offset) }
            guard let reserved, offset > reserved else { return nil }
            state.reservedEnd = offset
            return reserved..<offset
        }
        guard let range else { return want { $0.allowance = max($0.allowance, offset) } }
        tellLegs()
        context.space.reserve(range.length, expecting: (range, asset.id)) { [self] in
            let isOver = state.withLock { state in
                if !state.isOver { state.reservation += range.length }
                return state.isOver
            }
            guard !isOver else { return context.space.release(range.length) }
            want { $0.allowance = max($0.allowance, offset) }
        }
    }

    /// Ends at `offset` of the asset where it can: what lies behind it is fetched by another.
    func shorten(to offset: Int64) {
        state.withLock { state in
            guard offset < state.wishes.end ?? .max else { return }
            state.wishes.end = offset
            state.body?.end(at: offset)
        }
        tellLegs()
    }

    private func want(_ change: (inout Wishes) -> Void) {
        state.withLock { change(&$0.wishes) }
        tellLegs()
    }

    fileprivate enum Telling {
        case promote(TransferPriority)
        case allow(Int64)
        case shorten(Int64)
        case cancel
    }

    /// Tells the legs what is wanted and they do not know yet. One thread at a time: a pause and a resume that come from two
    /// threads must not overtake each other.
    func tellLegs() {
        let isMine = state.withLock { state in
            defer { state.isTelling = true }
            return !state.isTelling
        }
        guard isMine else { return }
        while let (transfer, telling) = nextTelling() {
            switch telling {
            case .promote(let priority): transfer.promote(to: priority)
            case .allow(let bytes): transfer.allow(upTo: bytes)
            case .shorten(let bytes): transfer.shorten(to: bytes)
            case .cancel: transfer.cancel()
            }
        }
    }

    /// Nil, and the telling is over, where every leg knows.
    private func nextTelling() -> (any Transfer, Telling)? {
        state.withLock { state in
            for index in state.legs.indices {
                guard let transfer = state.legs[index].transfer else { continue }
                if let telling = state.legs[index].nextTelling(of: state.wishes) { return (transfer, telling) }
            }
            state.isTelling = false
            return nil
        }
    }
}

extension FillTransfer.Leg {
    /// What its transfer must be told next; counts as told.
    fileprivate mutating func nextTelling(of wishes: FillTransfer.Wishes) -> FillTransfer.Telling? {
        if isCancelled || wishes.isCancelled {
            defer { told.isCancelled = true }
            return told.isCancelled ? nil : .cancel
        }
        if wishes.priority < told.priority {
            told.priority = wishes.priority
            return .promote(wishes.priority)
        }
        if wishes.allowance != told.allowance, let start = wishes.start {
            told.allowance = wishes.allowance
            return .allow(max(0, wishes.allowance - start))
        }
        guard let end = wishes.end, let start = wishes.start, end != told.end else { return nil }
        told.end = end
        return .shorten(max(0, end - start))
    }
}
