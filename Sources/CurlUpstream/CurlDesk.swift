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
                counts: Array(repeating: .init(), count: workers)))
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
                    priority: request.priority, notBefore: notBefore))
            let admitted = Self.admit(&state, at: now)
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
            state.queue.promote(transfer.ticket, to: priority)
            return Self.admit(&state, at: .now)
        }
        post(letters)
    }

    /// Gives the place of a transfer that has ended to the next ones.
    func ended(_ transfer: CurlTransfer, connections: (opened: Int, reused: Int)) {
        let letters: [Letter] = state.withLock { state in
            guard let running = state.running.removeValue(forKey: transfer.ticket) else { return [] }
            state.queue.finished(transfer.ticket)
            state.roster.finished(transfer.host, on: running.worker)
            state.counts[running.worker].ended += 1
            state.counts[running.worker].openedConnections += connections.opened
            state.counts[running.worker].reusedConnections += connections.reused
            return Self.admit(&state, at: .now) + Self.shareRate(state, like: transfer)
        }
        post(letters)
    }

    /// Starts what has come due; answers when to look again.
    func look(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        let (letters, next) = state.withLock { state in
            let letters = state.isStopped ? [] : Self.admit(&state, at: now)
            return (letters, state.queue.nextDue(after: now))
        }
        post(letters)
        return next
    }

    /// The bytes per second `transfer` may take now: its own limit, or its share of its origin's.
    func rate(of transfer: CurlTransfer) -> Int64? {
        let request = transfer.request
        guard let whole = request.originBytesPerSecond else { return request.bytesPerSecond }
        let sharers = state.withLock { $0.queue.activeCount(of: request.originName) }
        return min(request.bytesPerSecond ?? .max, max(1, whole / Int64(max(1, sharers))))
    }

    func snapshot() -> CurlPoolSnapshot {
        state.withLock { state in
            var workers = state.counts
            for worker in workers.indices { workers[worker].active = state.roster.totals[worker] }
            return CurlPoolSnapshot(
                active: state.queue.activeCount, queued: state.queue.queuedCount,
                activeByOrigin: state.queue.activeByOrigin, queuedByOrigin: state.queue.queuedByOrigin,
                workers: workers)
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
            case .cancel, .ratesChanged, .look, .stop: break
            }
        }
    }

    private static func admit(_ state: inout State, at now: ContinuousClock.Instant) -> [Letter] {
        guard !state.isStopped else { return [] }
        return state.queue.admit(at: now).flatMap { ticket -> [Letter] in
            guard let transfer = state.waiting.removeValue(forKey: ticket) else { return [] }
            let worker = state.roster.assign(transfer.host)
            state.running[ticket] = Running(transfer: transfer, worker: worker)
            return [Letter(worker: worker, command: .begin(transfer))] + shareRate(state, like: transfer)
        }
    }

    private static func shareRate(_ state: State, like transfer: CurlTransfer) -> [Letter] {
        guard transfer.request.originBytesPerSecond != nil else { return [] }
        let origin = transfer.request.originName
        let workers = Set(state.running.values.filter { $0.transfer.request.originName == origin }.map(\.worker))
        return workers.map { Letter(worker: $0, command: .ratesChanged(origin: origin)) }
    }

    private func post(_ letters: [Letter]) {
        for letter in letters {
            let isPosted = mailboxes.indices.contains(letter.worker) && mailboxes[letter.worker].post(letter.command)
            guard !isPosted else { continue }
            switch letter.command {
            case .begin(let transfer), .deliver(let transfer, _): deliverAside(transfer)
            case .cancel, .ratesChanged, .look, .stop: break
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
