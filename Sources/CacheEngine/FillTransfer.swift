import CacheCore
import CacheStore
import Synchronization

/// One fill on its way: asks the upstream, judges the answer's head, puts the bytes into the asset's file, and tells the
/// asset of each step.
final class FillTransfer: TransferDelegate {
    private struct State {
        var transfer: (any Transfer)?
        var isCancelled = false
        var isOver = false
        var reservation: Int64 = 0
        /// What it is asked for with, should it be promoted while it waits for space.
        var priority = TransferPriority.prefetch
        var isPrefetch = false
        /// Whether it is to rest: said before there is a transfer, it holds from the transfer's first moment on.
        var isPaused = false
        /// What the body brings, once its head is judged good.
        var body: Body?
    }

    private struct Body {
        let file: SparseFile
        let start: Int64
        /// Nil while the end is not known.
        var end: Int64?
        var position: Int64
    }

    let asset: OpenAsset
    let fill: FillLedger.FillID
    let wish: FillLedger.Wish
    /// What it goes on from.
    private let retry: FillRetry
    private let state = Mutex(State())

    private var context: EngineContext { asset.context }

    init(asset: OpenAsset, fill: FillLedger.FillID, wish: FillLedger.Wish, retry: FillRetry = FillRetry()) {
        self.asset = asset
        self.fill = fill
        self.wish = wish
        self.retry = retry
    }

    /// Reserves the space the window needs, then asks the upstream. `patience`: how long until its reader runs out of bytes.
    func begin(priority: TransferPriority, attempt: Int, patience: Duration = .zero) {
        context.openAssets.retain(asset)
        context.fillBook.enter(self)
        let bytes = wish.knownLength
        state.withLock { state in
            state.reservation = bytes
            state.priority = min(state.priority, priority)
            state.isPrefetch = priority == .prefetch
        }
        if retry.hasNewCredentials { context.counters.fillRetried(origin: asset.target.originName) }
        context.space.reserve(bytes) { [self] in launch(attempt: attempt, patience: patience) }
    }

    private func launch(attempt: Int, patience: Duration) {
        let (priority, isCancelled) = state.withLock { ($0.priority, $0.isCancelled) }
        guard !isCancelled else {
            ended(TransferEnd(error: CacheError(.cancelled, "Nobody wants these bytes any more.")))
            return
        }
        var request = asset.upstreamRequest(for: wish, priority: priority, delay: delay(beforeAttempt: attempt))
        request.patience = patience
        request.mayBePaused = wish == .whole
        let transfer = context.upstream.start(request, delivering: self)
        let (isLate, wanted, isPaused) = state.withLock { state in
            if !state.isOver { state.transfer = transfer }
            return (state.isCancelled, state.priority, state.isPaused)
        }
        if wanted < priority { transfer.promote(to: wanted) }
        if isPaused { transfer.pause() }
        if isLate { transfer.cancel() }
    }

    private func delay(beforeAttempt attempt: Int) -> Duration {
        if let delay = retry.delay { return delay }
        return attempt == 0 ? .zero : Backoff().delay(beforeRetry: attempt - 1, chance: context.chance.uniform())
    }

    func cancel() {
        let transfer = state.withLock { state in
            state.isCancelled = true
            return state.transfer
        }
        transfer?.cancel()
    }

    func promote(to priority: TransferPriority) {
        let transfer = state.withLock { state in
            state.priority = min(state.priority, priority)
            return state.transfer
        }
        transfer?.promote(to: priority)
    }

    /// Takes no more until `resume`.
    func pause() { rest(true)?.pause() }

    func resume() { rest(false)?.resume() }

    private func rest(_ isPaused: Bool) -> (any Transfer)? {
        state.withLock { state in
            state.isPaused = isPaused
            return state.transfer
        }
    }

    /// Ends at `offset` of the asset where it can: what lies behind it is fetched by another.
    func shorten(to offset: Int64) {
        let (transfer, bytes) = state.withLock { state -> ((any Transfer)?, Int64) in
            guard let body = state.body, offset >= body.position else { return (nil, 0) }
            state.body?.end = offset
            return (state.transfer, offset - body.start)
        }
        transfer?.shorten(to: bytes)
    }

    // MARK: TransferDelegate

    func began(_ head: UpstreamHead) -> HeadVerdict {
        do {
            switch try asset.judge(head, for: wish, of: fill) {
            case .bytes(let range, let file):
                let end = range.upperBound == .max ? nil : range.upperBound
                state.withLock {
                    $0.body = Body(file: file, start: range.lowerBound, end: end, position: range.lowerBound)
                }
                let sink = FileSink(file: file, offset: range.lowerBound)
                return .store(into: sink, limit: end.map { $0 - range.lowerBound })
            case .nothing:
                return .enough
            }
        } catch {
            return .refuse(error)
        }
    }

    func progressed(to total: Int64) {
        let arrival = state.withLock { state -> (range: ByteRange, file: SparseFile, released: Int64)? in
            guard var body = state.body, body.start + total > body.position else { return nil }
            let range = body.position..<(body.start + total)
            body.position = range.upperBound
            state.body = body
            let released = min(state.reservation, range.length)
            state.reservation -= released
            return (range, body.file, released)
        }
        guard let arrival else { return }
        asset.arrived(arrival.range, in: arrival.file, by: fill)
        context.space.release(arrival.released)
    }

    func ended(_ end: TransferEnd) {
        let (rest, isPrefetch, isShort) = state.withLock { state in
            let rest = state.reservation
            state.reservation = 0
            state.transfer = nil
            state.isOver = true
            let isShort = state.body.map { $0.position < $0.end ?? 0 } ?? false
            return (rest, state.isPrefetch, isShort)
        }
        context.fillBook.leave(self)
        context.space.release(rest)
        var error = end.error
        if error == nil, isShort {
            error = CacheError(.upstreamProtocol, "The upstream ended its answer before the promised length.")
        }
        context.counters.fillEnded(
            origin: asset.target.originName, isPrefetch: isPrefetch, end: end, error: error)
        tell(error)
    }

    /// Tells the asset how it ended; after a 401 only when the origin's credentials have been read again.
    private func tell(_ error: CacheError?) {
        let settings = asset.target.settings
        let next = error?.code.retry(after: retry, within: settings.readTimeout)
        guard case .upstreamRefused(401, _) = error?.code, !retry.hasNewCredentials,
            let credentials = settings.credentialsFile
        else { return finish(error, next) }
        context.credentials.reread(credentials) { [self] in finish(error, .withNewCredentials) }
    }

    private func finish(_ error: CacheError?, _ next: FillRetry?) {
        asset.ended(fill, error: error, retry: next)
        context.openAssets.release(asset)
    }
}

extension FillLedger.Wish {
    /// How many bytes it is known to bring.
    var knownLength: Int64 {
        switch self {
        case .opening(.closed(let range)): range.length
        case .opening(.suffix(let count)): count
        case .window(let range): range.length
        case .opening(.whole), .whole, .confirmation: 0
        }
    }
}
