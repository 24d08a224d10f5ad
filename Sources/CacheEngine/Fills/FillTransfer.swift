import CacheCore
import CacheStore

/// One fill in progress: requests the bytes, judges the response head, stores the body in the asset's file, and reports
/// each step to the asset.
///
/// It can have two attempts in flight: the first, and a hedge if the first byte is late. The first accepted head wins.
/// The other attempt is cancelled, and its later events are ignored.
final class FillTransfer: Sendable {
    /// The intended state of the attempts' transfers; it may be set before a transfer exists.
    struct DesiredState: Hashable {
        var priority = TransferPriority.prefetch
        /// The asset offset up to which bytes may be stored; `.max`: no limit.
        var allowance = Int64.max
        /// The asset offset of the body's first byte; nil before the response head.
        var start: Int64?
        /// The asset offset where the body ends; nil: as requested.
        var end: Int64?
        var isCancelled = false
    }

    /// One transfer of the fill from one address.
    struct Attempt {
        /// The receiver of the request.
        enum Receiver {
            /// The upstream, at the address of this permit.
            case upstream(OriginHealth.Permit)
            /// Another node of the fleet, by name.
            case peer(String)
        }

        /// The reason why the attempt brings no bytes, although its transfer did not fail.
        enum Objection {
            /// It was not sent.
            case unsent(CacheError)
            /// A mirror's response was not trusted.
            case untrusted
            /// The response refused the credentials or the link, and others may succeed.
            case credentials
        }

        var receiver: Receiver
        let isHedge: Bool
        /// Nil before its start and after its end.
        var transfer: (any Transfer)?
        /// The part of the desired state that the transfer has been sent.
        var sent: DesiredState
        /// The uptime when the transfer left the queue; nil: not sent.
        var startedAt: Duration?
        var isCancelled = false
        var objection: Objection?
        /// Whether its evidence about the address has been reported to `OriginHealth`.
        var isSettled = false
        var isOver = false

        /// Nil: the bytes come from another node of the fleet.
        var permit: OriginHealth.Permit? { if case .upstream(let permit) = receiver { permit } else { nil } }
        /// The node that is asked in place of the upstream; nil: the upstream.
        var peer: String? { if case .peer(let name) = receiver { name } else { nil } }
        /// The reason why the attempt was not sent; nil if it was sent or just cancelled.
        var refusal: CacheError? { if case .unsent(let error) = objection { error } else { nil } }
        /// Whether a mirror's response was not trusted.
        var isSkip: Bool { if case .untrusted = objection { true } else { false } }
        /// Whether other credentials or another link may succeed.
        var isRepeatable: Bool { if case .credentials = objection { true } else { false } }
    }

    /// The progress of the response; an attempt is stated by its index.
    enum Response {
        /// No head was accepted.
        case awaited
        /// The head of this attempt is being judged.
        case judging(Int)
        /// The response of this attempt was accepted; without a body, or with one that is not used, the body is nil.
        case accepted(Int, Body?)
    }

    /// The source of the bytes of the present try.
    enum Source {
        case undecided
        /// The other nodes of the fleet are being asked.
        case asking
        case upstream
        case peer
    }

    /// The accepted body of the response.
    struct Body {
        let file: SparseFile
        let start: Int64
        /// The asset offset of its end; nil while unknown.
        var end: Int64?
        /// The asset offset of the next byte.
        var position: Int64
        /// The uptime when the response head was accepted.
        let startedAt: Duration

        /// Ends the body at `offset`, but not before its position.
        mutating func end(at offset: Int64) { end = min(end ?? .max, max(offset, position)) }
    }

    /// The mutable state of the fill, guarded by its lock.
    struct State {
        /// The number of consecutive failures before this try.
        var failureCount = 0
        /// The time until the fill's reader runs out of bytes.
        var slack = Duration.zero
        var startedAt: Timestamp?
        /// Reserved disk space that is not used yet, in bytes.
        var reservation: Int64 = 0
        /// The asset offset up to which space is reserved; nil: none is reserved, because the length is unknown.
        var reservedEnd: Int64?
        var isPrefetch = false
        var desired = DesiredState()
        /// Whether a thread is sending commands to the attempts.
        var isSyncing = false
        /// The asset's target when the request was made; nil before that.
        var target: AssetTarget?
        /// The authorization of the requests, and the link to the bytes if they have one; nil before it is known.
        var access: UpstreamAccess?
        /// The URLs of the bytes: the origin's first, then the mirrors'.
        var addresses: [String] = []
        var attempts: [Attempt] = []
        var response = Response.awaited
        /// The latest response head that was judged.
        var head: UpstreamHead?
        var meter = RateMeter()
        /// Whether the fill brings another generation than it was started for.
        var hasMoved = false
        /// Whether the requested bytes are counted at the end of the fill: under flow control their number is unknown
        /// before.
        var isCountedAtEnd = false
        /// Whether the requests omit `Range`.
        var isPlain = false
        /// The source of the bytes.
        var source = Source.undecided
        /// Whether this node has left the request to another one that asked for the same bytes.
        var hasDeferred = false
        /// The offset at which the request to the upstream ends, because another node has the bytes from there on; nil: as
        /// planned.
        var peerLimit: Int64?
        var isOver = false

        /// The index of the attempt with the accepted response. Not inlined: the optimizer of Swift 6.3.1 fails with "Found outside
        /// of lifetime use" where this is part of `progress`.
        @inline(never) var winner: Int? { if case .accepted(let number, _) = response { number } else { nil } }
        /// The body of the accepted response; nil before, and if it is not used.
        var body: Body? { if case .accepted(_, let body) = response { body } else { nil } }

        /// Changes the body of the accepted response, if there is one.
        mutating func changeBody(_ change: (inout Body) -> Void) {
            guard case .accepted(let number, var body?) = response else { return }
            change(&body)
            response = .accepted(number, body)
        }

        /// Adds an attempt that starts with the present priority. Returns its number.
        mutating func add(to receiver: Attempt.Receiver, isHedge: Bool = false) -> Int {
            let sent = DesiredState(priority: desired.priority)
            attempts.append(Attempt(receiver: receiver, isHedge: isHedge, sent: sent))
            return attempts.count - 1
        }
    }

    /// Guards the asset and fill that the transfer belongs to; `move` replaces both.
    private let location: OrderedMutex<FillLocation>
    let context: EngineContext
    /// The parameters of this try.
    let retry: FillRetry
    /// The fields of the reader that caused the fill, for all its requests; nil: it has none.
    private let forwarded: HeaderList?
    let trace: FillTrace
    /// The number of the last purge before the request.
    private let lastPurge: UInt64
    /// Guards the mutable state.
    let state = OrderedMutex(.fillTransfer, State())

    var asset: OpenAsset { location.withLock { $0.asset } }
    var fill: FillLedger.FillID { location.withLock { $0.fill } }
    var fillRequest: FillLedger.FillRequest { location.withLock { $0.fillRequest } }

    /// The target of all requests. ``OpenAsset/steps(for:in:)`` has authorized it before it made the transfer.
    var target: AssetTarget {
        var target = asset.target
        target.forwarded = forwarded
        return target
    }

    init(for location: FillLocation, retry: FillRetry, forwarded: HeaderList?, trace: FillTrace) {
        self.location = OrderedMutex(.fillLocation, location)
        context = location.asset.context
        self.retry = retry
        self.forwarded = forwarded
        self.trace = trace
        lastPurge = context.recentPurges.number
    }

    /// Whether a purge since the request may have selected the asset.
    var isOutdated: Bool {
        let asset = asset
        return context.recentPurges.mayContain(asset.target, asset.record, since: lastPurge)
    }

    /// Continues in the asset of the generation that the response started, which has a hold for the transfer.
    func move(to next: FillLocation) {
        state.withLock { $0.hasMoved = true }
        let before = location.withLock { location in
            defer { location = next }
            return location.asset
        }
        context.openAssets.release(before)
    }

    /// Whether the fill brings another generation than it was started for.
    var hasMoved: Bool { state.withLock { $0.hasMoved } }
    /// The number of consecutive failures before this try.
    var failureCount: Int { state.withLock { $0.failureCount } }
    /// Whether the requests omit `Range`.
    var isPlain: Bool { state.withLock { $0.isPlain } }
    var priority: TransferPriority { state.withLock { $0.desired.priority } }

    /// Reserves disk space for the first claim, then requests the bytes.
    func begin(_ start: FillLedger.Start) {
        context.openAssets.retain(asset)
        context.fillRegistry.enter(self)
        let bytes = start.claim?.length ?? fillRequest.knownLength
        let run = start.claim ?? fillRequest.knownRun
        let now = context.wallClock.now()
        let priority = state.withLock { state in
            state.failureCount = start.attempt
            state.slack = start.slack
            state.startedAt = now
            state.reservation = bytes
            state.reservedEnd = run?.upperBound ?? fillRequest.window.firstByte
            state.desired.priority = min(state.desired.priority, start.priority)
            state.isPrefetch = start.priority == .prefetch
            return state.desired.priority
        }
        // The asset counts the configured retries; it does not know of a free one.
        if start.attempt == 0, retry.isFree { context.counters.fillRetried(origin: asset.target.originName) }
        let expected = run.map { (run: $0, asset: asset.id) }
        context.space.reserve(bytes, for: ObjectIdentifier(self), priority, expecting: expected) { [self] in askPeers()
        }
    }

    /// Obtains the credentials and the link of the request if the origin needs them, then starts the first attempt.
    func launch() {
        let target = target
        context.upstreams.accounts.open(
            target, for: fillRequest.isContinuation ? .continuation : .description, over: context.upstreams
        ) { [self] result in
            switch result {
            case .success(let access): launch(target, access)
            case .failure(let error): refuse(error)
            }
        }
    }

    /// Starts the first attempt, at the first admissible address.
    private func launch(_ target: AssetTarget, _ access: UpstreamAccess) {
        state.withLock { $0.source = .upstream }
        let addresses = access.link.map { [$0.url] } ?? context.upstreams.addresses(of: target)
        let isPlain = retry.isPlain || fillRequest.isOpening && context.upstreams.health.refusesRanges(target)
        let (failureCount, isCancelled) = state.withLock { state in
            state.target = target
            state.access = access
            state.isPlain = isPlain
            state.addresses = addresses
            return (state.failureCount, state.desired.isCancelled)
        }
        guard !isCancelled else {
            return refuse(Self.unwanted)
        }
        if failureCount == 0, !retry.isAgain { context.upstreams.health.asked(target) }
        do throws(CacheError) {
            let permit = try context.upstreams.health.admit(
                target, of: addresses.count, from: retry.address % addresses.count, without: retry.skipped,
                failing: context.upstreams.failing(addresses))
            send(permit, to: addresses[permit.address], delay: delay(after: failureCount), isHedge: false)
        } catch {
            refuse(error)
        }
    }

    static let unwanted = CacheError(.cancelled, "The bytes are no longer needed by a reader.")

    /// The delay before the request: as given, otherwise exponential backoff.
    private func delay(after failureCount: Int) -> Duration {
        if let delay = retry.delay { return delay }
        return failureCount == 0
            ? .zero : Backoff.delay(beforeRetry: failureCount - 1, random: context.random.uniform())
    }

    /// Queues one attempt.
    func send(_ permit: OriginHealth.Permit, to url: String, delay: Duration, isHedge: Bool) {
        let (number, priority, slack) = state.withLock { state in
            (state.add(to: .upstream(permit), isHedge: isHedge), state.desired.priority, state.slack)
        }
        let (isPlain, access, limit) = state.withLock { ($0.isPlain, $0.access, $0.peerLimit) }
        let target = target
        var request = asset.upstreamRequest(
            to: target, for: fillRequest, priority: priority, delay: delay, isPlain: isPlain)
        request.url = url
        if let limit, let first = request.window.firstByte { request.window = .closed(first..<limit) }
        access?.apply(to: &request)
        target.propagate(trace.context, in: &request.headers)
        request.slack = slack
        request.mayBePaused = request.window == .whole
        start(request, as: number)
    }

    /// Starts the transfer of an attempt.
    func start(_ request: UpstreamRequest, as number: Int) {
        let transfer = context.upstreams.client.start(request, delivering: TransferAttempt(of: self, number: number))
        state.withLock { state in
            if !state.attempts[number].isOver { state.attempts[number].transfer = transfer }
        }
        syncAttempts()
    }

    // MARK: Desired state

    /// Cancels all attempts.
    func cancel() { want { $0.isCancelled = true } }

    /// Raises the priority of all attempts, and of the reservations that wait for space.
    func promote(to priority: TransferPriority) {
        want { $0.priority = min($0.priority, priority) }
        context.space.promote(ObjectIdentifier(self), to: priority)
    }

    /// Permits bytes up to `offset` to be stored, once their space is reserved; the transfer pauses there. The first
    /// allowance sets a limit. Later ones only raise it, so that their order does not matter.
    func allow(upTo offset: Int64) {
        let range = state.withLock { state -> ByteRange? in
            let reserved = state.isPlain ? nil : state.reservedEnd
            if state.desired.allowance == .max { state.desired.allowance = min(offset, reserved ?? offset) }
            guard let reserved, offset > reserved else { return nil }
            state.reservedEnd = offset
            return reserved..<offset
        }
        guard let range else { return want { $0.allowance = max($0.allowance, offset) } }
        syncAttempts()
        context.space.reserve(
            range.length, for: ObjectIdentifier(self), priority, expecting: (range, asset.id)
        ) { [self] in
            let isOver = state.withLock { state in
                if !state.isOver { state.reservation += range.length }
                return state.isOver
            }
            guard !isOver else { return context.space.release(range.length) }
            want { $0.allowance = max($0.allowance, offset) }
        }
    }

    /// Ends the body at `offset` of the asset if possible: another fill brings the bytes behind it.
    func shorten(to offset: Int64) {
        state.withLock { state in
            guard offset < state.desired.end ?? .max else { return }
            state.desired.end = offset
            state.changeBody { $0.end(at: offset) }
        }
        syncAttempts()
    }

    private func want(_ change: (inout DesiredState) -> Void) {
        state.withLock { change(&$0.desired) }
        syncAttempts()
    }

    /// A change that a transfer must perform to reach the desired state.
    fileprivate enum Command {
        case promote(TransferPriority)
        case allow(Int64)
        case shorten(Int64)
        case cancel
    }

    /// Sends each attempt the commands that bring it to the desired state. Only one thread does this at a time: a pause
    /// and a resumption from two threads must not overtake each other.
    func syncAttempts() {
        let isMine = state.withLock { state in
            defer { state.isSyncing = true }
            return !state.isSyncing
        }
        guard isMine else { return }
        while let (transfer, command) = nextCommand() {
            switch command {
            case .promote(let priority): transfer.promote(to: priority)
            case .allow(let bytes): transfer.allow(upTo: bytes)
            case .shorten(let bytes): transfer.shorten(to: bytes)
            case .cancel: transfer.cancel()
            }
        }
    }

    /// The next command and its transfer. Nil, and the synchronisation ends, if all attempts are up to date.
    private func nextCommand() -> (any Transfer, Command)? {
        state.withLock { state in
            for index in state.attempts.indices {
                guard let transfer = state.attempts[index].transfer else { continue }
                if let command = state.attempts[index].nextCommand(of: state.desired) { return (transfer, command) }
            }
            state.isSyncing = false
            return nil
        }
    }
}

extension FillTransfer.Attempt {
    /// The next command for this attempt, marked as sent; nil if the attempt is up to date.
    fileprivate mutating func nextCommand(of desired: FillTransfer.DesiredState) -> FillTransfer.Command? {
        if isCancelled || desired.isCancelled {
            defer { sent.isCancelled = true }
            return sent.isCancelled ? nil : .cancel
        }
        if desired.priority < sent.priority {
            sent.priority = desired.priority
            return .promote(desired.priority)
        }
        if desired.allowance != sent.allowance, let start = desired.start {
            sent.allowance = desired.allowance
            return .allow(max(0, desired.allowance - start))
        }
        guard let end = desired.end, let start = desired.start, end != sent.end else { return nil }
        sent.end = end
        return .shorten(max(0, end - start))
    }
}
