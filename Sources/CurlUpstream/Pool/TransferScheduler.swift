import CacheCore
import Synchronization

/// Scheduler of all workers: admits transfers, assigns them to workers and divides rate limits. Thread-safe.
///
/// Decisions are made under the lock and returned as messages. The messages are posted after the lock is released.
final class TransferScheduler: Sendable {
    /// A transfer that a worker carries, paused ones included.
    private struct Running {
        let transfer: CurlTransfer
        let worker: Int
    }

    /// The state that the lock guards.
    private struct State {
        /// Order and limits of all transfers.
        var queue: TransferQueue
        var assignment: WorkerAssignment
        /// Transfers that no worker has yet.
        var waiting: [TransferQueue.Ticket: CurlTransfer] = [:]
        /// Transfers that were assigned to a worker, including paused ones.
        var running: [TransferQueue.Ticket: Running] = [:]
        /// Counters by worker; `active` is filled in by `load`.
        var counts: [TransferLoad.Worker]
        /// Bytes per second of all transfers together; nil: no limit.
        var maxBytesPerSecond: Int64?
        /// After `stop` no transfer is admitted.
        var isStopped = false
    }

    /// A command, and the index of the worker that receives it.
    private struct WorkerMessage {
        let worker: Int
        let command: CurlCommand
    }

    /// The command queues, by worker index; fewer than configured if libcurl has no memory.
    let commandQueues: [WorkerCommandQueue]
    /// The addresses of all upstream servers.
    let addresses: UpstreamAddresses
    /// Wakes worker 0 for the timers of the queue and of the addresses.
    let timers: TimerWake
    /// Guards the queue, the assignment and the counters.
    private let state: OrderedMutex<State>
    private let tickets = Atomic<TransferQueue.Ticket>(0)
    /// Reads the clock of the pool.
    let now: @Sendable () -> Instant

    init(settings: CurlPoolSettings, now: @escaping @Sendable () -> Instant) {
        self.now = now
        let commandQueues = (0..<settings.workers).compactMap { _ in WorkerCommandQueue() }
        self.commandQueues = commandQueues
        timers = TimerWake { _ = commandQueues.first?.post(.look) }
        addresses = UpstreamAddresses(maxAge: settings.nameMaxAge, timers: timers, now: now)
        let workers = max(1, commandQueues.count)
        state = OrderedMutex(
            .leaf,
            State(
                queue: TransferQueue(limit: settings.maxTransfers),
                assignment: WorkerAssignment(workers: workers, perWorker: settings.transfersPerWorker),
                counts: Array(repeating: .init(), count: workers), maxBytesPerSecond: settings.maxBytesPerSecond))
    }

    func nextTicket() -> TransferQueue.Ticket { tickets.add(1, ordering: .relaxed).newValue }

    /// Queues `transfer`, and starts admissible transfers. After `stop` the transfer ends with `.shuttingDown`.
    func start(_ transfer: CurlTransfer) {
        let now = now()
        let request = transfer.request
        let isQueued = change { state in
            guard !state.isStopped else { return nil }
            let notBefore = request.delay > .zero ? now + request.delay : nil
            state.waiting[transfer.ticket] = transfer
            state.queue.add(
                TransferQueue.Entry(
                    ticket: transfer.ticket, origin: request.originName, originLimit: request.maxTransfers,
                    priority: request.priority, queued: now, slack: request.slack, notBefore: notBefore))
            return Self.admit(&state, at: now) + Self.makeWay(for: transfer, in: &state)
        }
        if !isQueued { deliverAside(transfer) }
    }

    /// Ends a queued transfer, or has its worker cancel it. Without effect after its end.
    func cancel(_ transfer: CurlTransfer) {
        change { state in
            if state.queue.remove(transfer.ticket) {
                state.waiting[transfer.ticket] = nil
                let error = CacheError(.cancelled, "The transfer was cancelled before it began.")
                return [WorkerMessage(worker: 0, command: .deliver(transfer, error))]
            }
            guard let running = state.running[transfer.ticket] else { return [] }
            return [WorkerMessage(worker: running.worker, command: .cancel(transfer))]
        }
    }

    /// Moves a queued transfer to a more urgent class.
    func promote(_ transfer: CurlTransfer, to priority: TransferPriority) {
        change { state in
            let now = now()
            state.queue.promote(transfer.ticket, to: priority, at: now)
            return Self.admit(&state, at: now) + Self.makeWay(for: transfer, in: &state)
        }
    }

    /// Has the worker of `transfer` apply its desired state. Without effect before it has a worker.
    func steer(_ transfer: CurlTransfer) {
        let worker = state.withLock { $0.running[transfer.ticket]?.worker }
        if let worker { post([WorkerMessage(worker: worker, command: .steer(transfer))]) }
    }

    /// Releases the permit of a transfer that has paused, or takes it out of the queue for one, and admits other
    /// transfers.
    func paused(_ transfer: CurlTransfer) {
        change { state in
            guard let running = state.running[transfer.ticket] else { return [] }
            if state.queue.isActive(transfer.ticket) { state.assignment.finished(transfer.host, on: running.worker) }
            state.queue.paused(transfer.ticket)
            transfer.enter(.paused)
            return Self.admit(&state, at: now(), after: transfer)
        }
    }

    /// A transfer has stopped at the scheduler's request. It queues for a permit behind the transfer that it yielded
    /// to.
    func yielded(_ transfer: CurlTransfer) {
        paused(transfer)
        resumes(transfer)
    }

    /// Queues a paused transfer for a permit; its worker is notified when it has one.
    func resumes(_ transfer: CurlTransfer) {
        change { state in
            let now = now()
            transfer.enter(.queued)
            state.queue.resumes(transfer.ticket, at: now)
            return Self.admit(&state, at: now)
        }
    }

    /// Whether `transfer` holds a permit.
    func hasPlace(_ transfer: CurlTransfer) -> Bool { state.withLock { $0.queue.isActive(transfer.ticket) } }

    /// Removes a completed transfer and admits others. `isConnectionIdle`: its connection can be reused.
    func ended(
        _ transfer: CurlTransfer, connections: (opened: Int, reused: Int), isConnectionIdle: Bool = false
    ) {
        change { state in
            guard let running = state.running.removeValue(forKey: transfer.ticket) else { return [] }
            if state.queue.isActive(transfer.ticket) {
                state.assignment.finished(transfer.host, on: running.worker, isConnectionIdle: isConnectionIdle)
            }
            let now = now()
            state.queue.finished(transfer.ticket, at: now)
            state.counts[running.worker].ended += 1
            state.counts[running.worker].openedConnections += connections.opened
            state.counts[running.worker].reusedConnections += connections.reused
            return Self.admit(&state, at: now, after: transfer)
        }
    }

    /// Changes the limits of all transfers together. Running transfers keep their permits and get their new rates.
    func setLimits(maxTransfers: Int, maxBytesPerSecond: Int64?) {
        change { state in
            state.queue.setLimit(maxTransfers)
            state.maxBytesPerSecond = maxBytesPerSecond
            return Self.admit(&state, at: now())
                + state.counts.indices.map { WorkerMessage(worker: $0, command: .ratesChanged) }
        }
    }

    /// Changes the state, posts the messages, and wakes worker 0 for a timer that is due earlier. Returns false if `body`
    /// returns nil.
    @discardableResult
    private func change(_ body: (inout State) -> [WorkerMessage]?) -> Bool {
        let (messages, due) = state.withLock { (body(&$0), $0.queue.nextDue) }
        post(messages ?? [])
        timers.schedule(due)
        return messages != nil
    }

    /// Admits transfers that are due; returns the time of the next call, or nil if nothing is scheduled.
    func look(at now: Instant) -> Instant? {
        let (messages, next) = state.withLock { state in
            let messages = state.isStopped ? [] : Self.admit(&state, at: now)
            return (messages, state.queue.nextDue)
        }
        post(messages)
        return next
    }

    /// The current rate limit of each transfer in bytes per second; nil: no limit. It is the minimum of the transfer's
    /// own limit, its share of the origin's limit, and its share of the global limit.
    func rates(of transfers: [CurlTransfer]) -> [Int64?] {
        state.withLock { state in transfers.map { Self.rate(of: $0.request, state) } }
    }

    /// Queued transfers that a reader waits for.
    var queuedForReaders: Int { state.withLock { $0.queue.queuedForReaders } }

    /// The current state, for statistics.
    var load: TransferLoad {
        state.withLock { state in
            var workers = state.counts
            for worker in workers.indices { workers[worker].active = state.assignment.totals[worker] }
            return TransferLoad(
                active: state.queue.activeCount, queued: state.queue.queuedCount,
                paused: state.queue.pausedCount, activeByOrigin: state.queue.activeByOrigin,
                queuedByOrigin: state.queue.queuedByOrigin, workers: workers)
        }
    }

    /// Ends all queued transfers with `.shuttingDown` and stops the workers.
    func stop() {
        let messages = state.withLock { state in
            state.isStopped = true
            let queued = state.queue.removeAll().compactMap { state.waiting.removeValue(forKey: $0) }
            return queued.map { WorkerMessage(worker: 0, command: .deliver($0, .poolShutDown)) }
                + commandQueues.indices.map { WorkerMessage(worker: $0, command: .stop) }
        }
        post(messages)
    }

    /// Handles the commands that a stopped worker left in its queue: transfers end with `.shuttingDown`.
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

    /// Admits queued transfers and returns the messages for their workers. `leaving`: the transfer that has just
    /// released its permit; if it shared a rate limit, the shares are recomputed.
    private static func admit(
        _ state: inout State, at now: Instant, after leaving: CurlTransfer? = nil
    ) -> [WorkerMessage] {
        guard !state.isStopped else { return [] }
        var messages: [WorkerMessage] = []
        var isShared = leaving.map { sharesRate($0, state) } ?? false
        for ticket in state.queue.admit(at: now) {
            if let transfer = state.waiting.removeValue(forKey: ticket) {
                let worker = state.assignment.assign(transfer.host)
                state.running[ticket] = Running(transfer: transfer, worker: worker)
                messages.append(WorkerMessage(worker: worker, command: .begin(transfer)))
            } else if let running = state.running[ticket] {
                state.assignment.resumed(running.transfer.host, on: running.worker)
                messages.append(WorkerMessage(worker: running.worker, command: .steer(running.transfer)))
            }
            guard let transfer = state.running[ticket]?.transfer else { continue }
            transfer.enter(.running)
            isShared = isShared || sharesRate(transfer, state)
        }
        guard isShared else { return messages }
        return messages + state.counts.indices.map { WorkerMessage(worker: $0, command: .ratesChanged) }
    }

    /// Has a running prefetch yield its permit if the live `transfer` would wait for one.
    private static func makeWay(for transfer: CurlTransfer, in state: inout State) -> [WorkerMessage] {
        guard let ticket = state.queue.yielding(to: transfer.ticket), let running = state.running[ticket] else {
            return []
        }
        running.transfer.yield()
        return [WorkerMessage(worker: running.worker, command: .steer(running.transfer))]
    }

    /// Whether the start or end of `transfer` changes the rate of others.
    private static func sharesRate(_ transfer: CurlTransfer, _ state: State) -> Bool {
        state.maxBytesPerSecond != nil || transfer.request.originBytesPerSecond != nil
    }

    /// The limits are divided equally among the transfers that hold a permit.
    private static func rate(of request: UpstreamRequest, _ state: State) -> Int64? {
        func share(_ whole: Int64?, _ sharers: Int) -> Int64? { whole.map { max(1, $0 / Int64(max(1, sharers))) } }
        let ofOrigin = share(request.originBytesPerSecond, state.queue.activeCount(of: request.originName))
        let ofAll = share(state.maxBytesPerSecond, state.queue.activeCount)
        return [request.bytesPerSecond, ofOrigin, ofAll].compactMap(\.self).min()
    }

    /// Posts messages. Must be called without the lock: delegates run if a worker has stopped.
    private func post(_ messages: [WorkerMessage]) {
        for message in messages {
            let isPosted =
                commandQueues.indices.contains(message.worker) && commandQueues[message.worker].post(message.command)
            guard !isPosted else { continue }
            switch message.command {
            case .begin(let transfer), .deliver(let transfer, _): deliverAside(transfer)
            case .cancel, .steer, .ratesChanged, .look, .stop: break
            }
        }
    }

    /// Ends a transfer with `.shuttingDown` on a thread of its own, because no worker is left for it.
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
