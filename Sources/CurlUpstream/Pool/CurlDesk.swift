import CacheCore
import Synchronization

/// What the pool's threads share: the queue, which worker carries what, and the workers' mailboxes.
///
/// Decisions are made under the lock and come out as letters, which are posted after it is given back.
final class CurlDesk: Sendable {
    private struct Running {
        let transfer: CurlTransfer
        let worker: Int
    }

    private struct State {
        var queue: TransferQueue
        var roster: WorkerRoster
        var waiting: [TransferQueue.Ticket: CurlTransfer] = [:]
        var running: [TransferQueue.Ticket: Running] = [:]
        var counts: [CurlPoolSnapshot.Worker]
        let maxBytesPerSecond: Int64?
        var isStopped = false
    }

    private struct Letter {
        let worker: Int
        let command: CurlCommand
    }

    let mailboxes: [CurlMailbox]
    private let state: Mutex<State>
    private let tickets = Atomic<TransferQueue.Ticket>(0)

    init(settings: CurlPoolSettings) {
        mailboxes = (0..<settings.workers).compactMap { _ in CurlMailbox() }
        let workers = max(1, mailboxes.count)
        state = Mutex(
            State(
                queue: TransferQueue(limit: settings.maxTransfers),
                roster: WorkerRoster(workers: workers, perWorker: settings.transfersPerWorker),
                counts: Array(repeating: .init(), count: workers), maxBytesPerSecond: settings.maxBytesPerSecond))
    }

    func nextTicket() -> TransferQueue.Ticket { tickets.add(1, ordering: .relaxed).newValue }

    /// Queues `transfer`, and starts what may start.
    func start(_ transfer: CurlTransfer) {
        let now = ContinuousClock.now
        let request = transfer.request
        let letters: [Letter]? = state.withLock { state in
            guard !state.isStopped else { return nil }
            let notBefore = request.delay > .zero ? now + request.delay : nil
            state.waiting[transfer.ticket] = transfer
            state.queue.add(
                TransferQueue.Entry(
                    ticket: transfer.ticket, origin: request.originName, originLimit: request.maxTransfers,
                    priority: request.priority, queued: now, patience: request.patience, notBefore: notBefore))
            let admitted = Self.admit(&state, at: now) + Self.makeWay(for: transfer, in: &state)
            return notBefore == nil ? admitted : admitted + [Letter(worker: 0, command: .look)]
        }
        if let letters { post(letters) } else { deliverAside(transfer) }
    }

    func cancel(_ transfer: CurlTransfer) {
        let letter: Letter? = state.withLock { state in
            if state.queue.remove(transfer.ticket) {
                state.waiting[transfer.ticket] = nil
                let error = CacheError(.cancelled, "The transfer was cancelled before it began.")
                return Letter(worker: 0, command: .deliver(transfer, error))
            }
            return state.running[transfer.ticket].map { Letter(worker: $0.worker, command: .cancel(transfer)) }
        }
        if let letter { post([letter]) }
    }

    func promote(_ transfer: CurlTransfer, to priority: TransferPriority) {
        let letters = state.withLock { state in
            let now = ContinuousClock.now
            state.queue.promote(transfer.ticket, to: priority, at: now)
            return Self.admit(&state, at: now) + Self.makeWay(for: transfer, in: &state)
        }
        post(letters)
    }

    /// Tells the worker that carries `transfer` to look at what is wished of it.
    func steer(_ transfer: CurlTransfer) {
        let worker = state.withLock { $0.running[transfer.ticket]?.worker }
        if let worker { post([Letter(worker: worker, command: .steer(transfer))]) }
    }

    /// Takes the place of a transfer that is paused, or that waits to go on, for the next ones.
    func paused(_ transfer: CurlTransfer) {
        let letters: [Letter] = state.withLock { state in
            guard let running = state.running[transfer.ticket] else { return [] }
            if state.queue.isActive(transfer.ticket) { state.roster.finished(transfer.host, on: running.worker) }
            state.queue.paused(transfer.ticket)
            transfer.enter(.paused)
            return Self.admit(&state, at: .now, after: transfer)
        }
        post(letters)
    }

    /// A transfer that was asked to has stopped, and queues for a place behind what it made way for.
    func yielded(_ transfer: CurlTransfer) {
        paused(transfer)
        resumes(transfer)
    }

    /// Queues a paused transfer for a place; its worker is told when it has one.
    func resumes(_ transfer: CurlTransfer) {
        let letters: [Letter] = state.withLock { state in
            let now = ContinuousClock.now
            transfer.enter(.queued)
            state.queue.resumes(transfer.ticket, at: now)
            return Self.admit(&state, at: now)
        }
        post(letters)
    }

    /// Whether `transfer` has a place now.
    func hasPlace(_ transfer: CurlTransfer) -> Bool { state.withLock { $0.queue.isActive(transfer.ticket) } }

    /// Gives the place of a transfer that has ended to the next ones. `isConnectionIdle`: its connection can serve another one.
    func ended(
        _ transfer: CurlTransfer, connections: (opened: Int, reused: Int), isConnectionIdle: Bool = false
    ) {
        let letters: [Letter] = state.withLock { state in
            guard let running = state.running.removeValue(forKey: transfer.ticket) else { return [] }
            if state.queue.isActive(transfer.ticket) {
                state.roster.finished(transfer.host, on: running.worker, isConnectionIdle: isConnectionIdle)
            }
            let now = ContinuousClock.now
            state.queue.finished(transfer.ticket, at: now)
            state.counts[running.worker].ended += 1
            state.counts[running.worker].openedConnections += connections.opened
            state.counts[running.worker].reusedConnections += connections.reused
            let letters = Self.admit(&state, at: now, after: transfer)
            return state.queue.nextDue == nil ? letters : letters + [Letter(worker: 0, command: .look)]
        }
        post(letters)
    }

    /// Starts what has come due; answers when to look again.
    func look(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        let (letters, next) = state.withLock { state in
            let letters = state.isStopped ? [] : Self.admit(&state, at: now)
            return (letters, state.queue.nextDue)
        }
        post(letters)
        return next
    }

    /// The bytes per second each of `transfers` may take now: the least of its own limit, its share of its origin's and
    /// its share of that on all.
    func rates(of transfers: [CurlTransfer]) -> [Int64?] {
        state.withLock { state in transfers.map { Self.rate(of: $0.request, state) } }
    }

    var queuedForReaders: Int { state.withLock { $0.queue.queuedForReaders } }

    func snapshot() -> CurlPoolSnapshot {
        state.withLock { state in
            var workers = state.counts
            for worker in workers.indices { workers[worker].active = state.roster.totals[worker] }
            return CurlPoolSnapshot(
                active: state.queue.activeCount, queued: state.queue.queuedCount,
                paused: state.queue.pausedCount, activeByOrigin: state.queue.activeByOrigin,
                queuedByOrigin: state.queue.queuedByOrigin, workers: workers)
        }
    }

    /// Ends everything that waits, and tells the workers to stop.
    func stop() {
        let letters = state.withLock { state in
            state.isStopped = true
            let queued = state.queue.removeAll().compactMap { state.waiting.removeValue(forKey: $0) }
            return queued.map { Letter(worker: 0, command: .deliver($0, .poolShutDown)) }
                + mailboxes.indices.map { Letter(worker: $0, command: .stop) }
        }
        post(letters)
    }

    /// Ends what a stopped worker left in its mailbox.
    func abandon(_ commands: [CurlCommand]) {
        for command in commands {
            switch command {
            case .begin(let transfer):
                transfer.delegate.ended(TransferEnd(error: .poolShutDown))
                ended(transfer, connections: (0, 0))
            case .deliver(let transfer, let error): transfer.delegate.ended(TransferEnd(error: error))
            case .cancel, .steer, .ratesChanged, .look, .stop: break
            }
        }
    }

    /// Gives free places away; `leaving` is a transfer that gave its own back.
    private static func admit(
        _ state: inout State, at now: ContinuousClock.Instant, after leaving: CurlTransfer? = nil
    ) -> [Letter] {
        guard !state.isStopped else { return [] }
        var letters: [Letter] = []
        var isShared = leaving.map { sharesRate($0, state) } ?? false
        for ticket in state.queue.admit(at: now) {
            if let transfer = state.waiting.removeValue(forKey: ticket) {
                let worker = state.roster.assign(transfer.host)
                state.running[ticket] = Running(transfer: transfer, worker: worker)
                letters.append(Letter(worker: worker, command: .begin(transfer)))
            } else if let running = state.running[ticket] {
                state.roster.resumed(running.transfer.host, on: running.worker)
                letters.append(Letter(worker: running.worker, command: .steer(running.transfer)))
            }
            guard let transfer = state.running[ticket]?.transfer else { continue }
            transfer.enter(.running)
            isShared = isShared || sharesRate(transfer, state)
        }
        guard isShared else { return letters }
        return letters + state.counts.indices.map { Letter(worker: $0, command: .ratesChanged) }
    }

    /// Asks running prefetch to rest where a live transfer would wait for its place.
    private static func makeWay(for transfer: CurlTransfer, in state: inout State) -> [Letter] {
        guard let ticket = state.queue.yielding(to: transfer.ticket), let running = state.running[ticket] else {
            return []
        }
        running.transfer.yield()
        return [Letter(worker: running.worker, command: .steer(running.transfer))]
    }

    private static func sharesRate(_ transfer: CurlTransfer, _ state: State) -> Bool {
        state.maxBytesPerSecond != nil || transfer.request.originBytesPerSecond != nil
    }

    private static func rate(of request: UpstreamRequest, _ state: State) -> Int64? {
        func share(_ whole: Int64?, _ sharers: Int) -> Int64? { whole.map { max(1, $0 / Int64(max(1, sharers))) } }
        let ofOrigin = share(request.originBytesPerSecond, state.queue.activeCount(of: request.originName))
        let ofAll = share(state.maxBytesPerSecond, state.queue.activeCount)
        return [request.bytesPerSecond, ofOrigin, ofAll].compactMap(\.self).min()
    }

    private func post(_ letters: [Letter]) {
        for letter in letters {
            let isPosted = mailboxes.indices.contains(letter.worker) && mailboxes[letter.worker].post(letter.command)
            guard !isPosted else { continue }
            switch letter.command {
            case .begin(let transfer), .deliver(let transfer, _): deliverAside(transfer)
            case .cancel, .steer, .ratesChanged, .look, .stop: break
            }
        }
    }

    /// Ends a transfer that no worker is left to take, on a thread of its own.
    private func deliverAside(_ transfer: CurlTransfer) {
        let thread = WorkerThread { [self] in
            transfer.delegate.ended(TransferEnd(error: .poolShutDown))
            ended(transfer, connections: (0, 0))
        }
        thread?.detach()
    }
}

extension CacheError {
    static var poolShutDown: CacheError { CacheError(.shuttingDown, "The service is shutting down.") }
}
