import CCurl
import CacheCore

/// Event loop of one thread over one multi handle: starts transfers, drives libcurl, flushes bodies and enforces
/// timeouts.
///
/// An iteration visits only exchanges with new events or an expired alarm, so that idle transfers cost nothing.
final class CurlWorker {
    private let index: Int
    private let commandQueue: WorkerCommandQueue
    private let scheduler: TransferScheduler
    private let settings: CurlPoolSettings
    private let buffers: BufferPool
    /// Exchanges with events since the last iteration.
    private let notes = ReadyExchanges()
    /// Exchanges in progress by the easy handle of their current hop.
    private var exchanges: [UnsafeMutableRawPointer: CurlExchange] = [:]
    /// The same exchanges by ticket.
    private var byTicket: [TransferQueue.Ticket: CurlExchange] = [:]
    /// The lists of each easy handle, header fields and addresses; libcurl requires them until the handle is cleaned
    /// up.
    private var lists: [UnsafeMutableRawPointer: [UnsafeMutablePointer<curl_slist>]] = [:]
    /// The time of the next visit of each exchange. It is never later than the exchange's next due time; it can be
    /// earlier if that has moved since.
    private var alarms = IndexedHeap<[TransferQueue.Ticket: Int], Instant>()
    private var keep: ConnectionCacheSizer
    private var resets: StreamResets
    private var probes: AddressProbes
    private var isStopping = false

    /// Poll timeout if nothing is due.
    private static let longestWait = Duration.seconds(60)

    init(index: Int, commandQueue: WorkerCommandQueue, scheduler: TransferScheduler, settings: CurlPoolSettings) {
        self.index = index
        self.commandQueue = commandQueue
        self.scheduler = scheduler
        self.settings = settings
        buffers = BufferPool(bytes: settings.bufferBytes)
        resets = StreamResets(multi: commandQueue.multi)
        probes = AddressProbes(
            multi: commandQueue.multi, addresses: scheduler.addresses, userAgent: settings.userAgent)
        keep = ConnectionCacheSizer(most: settings.connectionsPerWorker, at: scheduler.now())
    }

    /// Runs until a `.stop` command; every transfer has ended when it returns.
    func run() {
        while !isStopping {
            for command in commandQueue.collect() { obey(command) }
            guard !isStopping else { break }
            if let connections = keep.change(running: exchanges.count, at: scheduler.now()) {
                larder_multi_set_long(commandQueue.multi, CURLMOPT_MAXCONNECTS, connections)
            }
            turn()
            // Worker 0 alone drives the queue's timers and the probes. After the turn, which can end a probe and thus sets
            // the time of the next one.
            let due = index == 0 ? driveTimers() : nil
            let wait = Int32(clamping: milliseconds(until: due))
            curl_multi_poll(commandQueue.multi, nil, 0, wait, nil)
            if index == 0 { scheduler.timers.woke() }
        }
        let left = commandQueue.close()
        for exchange in Array(exchanges.values) { end(exchange, with: .poolShutDown) }
        for easy in resets.handles where resets.ended(easy) { discard(easy) }
        for easy in probes.handles { _ = probes.ended(easy, CURLE_ABORTED_BY_CALLBACK) }
        scheduler.abandon(left)
    }

    /// Admits transfers and starts probes that are due. Returns the time of the next call; nil if nothing is scheduled.
    private func driveTimers() -> Instant? {
        scheduler.timers.sleeps(until: nil)
        probes.start()
        let due = [scheduler.look(at: scheduler.now()), scheduler.addresses.nextProbe].compactMap(\.self).min()
        scheduler.timers.sleeps(until: due)
        return due
    }

    /// Executes one command of another thread. A command for a transfer that has ended has no effect.
    private func obey(_ command: CurlCommand) {
        switch command {
        case .begin(let transfer): begin(transfer)
        case .cancel(let transfer):
            guard let exchange = byTicket[transfer.ticket] else { return }
            end(exchange, with: CacheError(.cancelled, "The transfer was cancelled."))
        case .steer(let transfer): if let exchange = byTicket[transfer.ticket] { steer(exchange) }
        case .ratesChanged:
            let sharers = Array(exchanges.values)
            let now = scheduler.now()
            for (exchange, rate) in zip(sharers, scheduler.rates(of: sharers.map(\.transfer))) {
                exchange.setRate(rate, at: now)
            }
        case .deliver(let transfer, let error): transfer.delegate.ended(TransferEnd(error: error))
        case .look: break
        case .stop: isStopping = true
        }
    }

    /// Creates the exchange of an admitted transfer and starts its first hop.
    private func begin(_ transfer: CurlTransfer) {
        guard !transfer.isCancelled else {
            return fail(transfer, CacheError(.cancelled, "The transfer was cancelled before it began."))
        }
        var made: CurlExchange?
        do {
            let exchange = try CurlExchange(
                transfer, settings: settings, buffers: buffers, sockets: commandQueue.sockets,
                addresses: scheduler.addresses, notes: notes, now: scheduler.now)
            made = exchange
            try launch(exchange)
        } catch {
            if let made { discard(made.easy) }
            fail(transfer, error)
        }
    }

    /// Ends a transfer for which no exchange could be started.
    private func fail(_ transfer: CurlTransfer, _ error: CacheError) {
        transfer.delegate.ended(TransferEnd(error: error))
        scheduler.ended(transfer, connections: (0, 0))
    }

    /// Configures the exchange's handle for its current hop and adds it to the multi handle.
    private func launch(_ exchange: CurlExchange) throws(CacheError) {
        let fields = try list(of: exchange.authorizedLines(), for: exchange.easy)
        let entry = exchange.route().map { addresses in
            // `+`: the entry ages like a resolved one.
            "+\(exchange.server):" + addresses.map { $0.contains(":") ? "[\($0)]" : $0 }.joined(separator: ",")
        }
        let route = try list(of: entry.map { [$0] } ?? [], for: exchange.easy)
        let rate = scheduler.rates(of: [exchange.transfer])[0]
        try CurlOptions.apply(to: exchange, headers: fields, route: route, rate: rate)
        exchange.setRate(rate, at: scheduler.now())
        try exchange.announce()
        guard curl_multi_add_handle(commandQueue.multi, exchange.easy) == CURLM_OK else {
            throw CacheError(.internal, "libcurl could not start the transfer.")
        }
        exchanges[exchange.easy] = exchange
        byTicket[exchange.transfer.ticket] = exchange
        exchange.touch()
    }

    /// Makes a list that exists as long as the handle; nil without lines.
    private func list(
        of lines: [String], for easy: UnsafeMutableRawPointer
    ) throws(CacheError) -> UnsafeMutablePointer<curl_slist>? {
        var list: UnsafeMutablePointer<curl_slist>?
        for line in lines {
            guard let longer = curl_slist_append(list, line) else {
                curl_slist_free_all(list)
                throw CacheError(.internal, "No memory is left for the request headers.")
            }
            list = longer
        }
        if let list { lists[easy, default: []].append(list) }
        return list
    }

    /// One iteration: opens valves that are due, drives libcurl, applies events, ends completed and timed-out
    /// exchanges.
    private func turn() {
        let due = ring(at: scheduler.now())
        for exchange in due {
            let code = exchange.setValve(at: scheduler.now())
            if code != CURLE_OK { end(exchange, code) }
        }
        var running: Int32 = 0
        curl_multi_perform(commandQueue.multi, &running)
        for exchange in notes.touched where isUnderWay(exchange) { advance(exchange) }
        var left: Int32 = 0
        while let message = curl_multi_info_read(commandQueue.multi, &left)?.pointee {
            guard message.msg == CURLMSG_DONE, let easy = message.easy_handle else { continue }
            if let exchange = exchanges[easy] {
                end(exchange, message.data.result, isWhole: message.data.result == CURLE_OK)
            } else if resets.ended(easy) {
                discard(easy)
            } else {
                _ = probes.ended(easy, message.data.result)
            }
        }
        let now = scheduler.now()
        for exchange in due where isUnderWay(exchange) {
            guard let timeout = exchange.timers.expired(at: now) else { continue }
            // Another address of the name can be tried.
            if timeout != .connect || exchange.hop.passes < 2 { exchange.timedOut(timeout) }
            end(exchange, CURLE_OPERATION_TIMEDOUT)
        }
        for exchange in notes.take() { setAlarm(for: exchange) }
    }

    /// Whether the exchange is still in progress; an earlier step of the iteration may have ended it.
    private func isUnderWay(_ exchange: CurlExchange) -> Bool { byTicket[exchange.transfer.ticket] === exchange }

    /// Removes the expired alarms and returns their exchanges.
    private func ring(at now: Instant) -> [CurlExchange] {
        var due: [CurlExchange] = []
        while let alarm = alarms.first, alarm.rank <= now {
            alarms.remove(alarm.id)
            if let exchange = byTicket[alarm.id] { due.append(exchange) }
        }
        return due
    }

    /// Sets the alarm to the exchange's next due time. An earlier alarm stays; it only causes one visit too many.
    private func setAlarm(for exchange: CurlExchange) {
        exchange.isTouched = false
        guard isUnderWay(exchange), let due = exchange.nextDue else { return }
        let ticket = exchange.transfer.ticket
        if let set = alarms.rank(of: ticket), set <= due { return }
        alarms.set(ticket, to: due)
    }

    /// Passes buffered body bytes to the sink, then applies the transfer's desired state.
    private func advance(_ exchange: CurlExchange) {
        exchange.collectNext()
        guard exchange.flush() else { return end(exchange, CURLE_WRITE_ERROR) }
        steer(exchange)
    }

    /// Applies the desired state of the transfer's owner (length, allowance) and the scheduler's decisions, as far as
    /// possible now.
    private func steer(_ exchange: CurlExchange) {
        let transfer = exchange.transfer
        exchange.shorten(to: transfer.wantedLength)
        if exchange.isCutShort { return end(exchange, CURLE_OK) }
        exchange.fitReceiveBuffer()
        let isHeld = exchange.isHeld
        switch exchange.hold {
        case .none:
            guard exchange.canPause, isHeld || transfer.takeYield() else {
                // The allowance may have grown between two writes of one iteration. Then the flow is shut although
                // nothing holds it.
                let code = exchange.isShut ? exchange.setValve(at: scheduler.now()) : CURLE_OK
                return code == CURLE_OK ? () : end(exchange, code)
            }
            guard exchange.pause(at: scheduler.now()) else { return end(exchange, CURLE_WRITE_ERROR) }
            guard !isHeld else { return scheduler.paused(transfer) }
            exchange.hold = .awaitingPlace
            scheduler.yielded(transfer)
        case .paused:
            guard !isHeld else { return }
            exchange.hold = .awaitingPlace
            scheduler.resumes(transfer)
        case .awaitingPlace:
            if isHeld {
                exchange.hold = .paused
                scheduler.paused(transfer)
            } else if scheduler.hasPlace(transfer) {
                let code = exchange.goOn(at: scheduler.now())
                if code != CURLE_OK { end(exchange, code) }
            }
        }
    }

    /// Cancels the exchange with `error`, unless its outcome is known already.
    private func end(_ exchange: CurlExchange, with error: CacheError) {
        exchange.cancelled(error)
        end(exchange, CURLE_ABORTED_BY_CALLBACK)
    }

    /// Removes the handle from the multi handle. Then starts the next hop, or ends the transfer. `isWhole`: the
    /// response is complete, so its connection can be reused.
    private func end(_ exchange: CurlExchange, _ code: CURLcode, isWhole: Bool = false) {
        let easy = exchange.easy
        let isCutStream = !isWhole && exchange.mayBeStream
        exchanges[easy] = nil
        curl_multi_remove_handle(commandQueue.multi, easy)
        var outcome = exchange.finished(code)
        if outcome == nil {
            do {
                try exchange.renewHandle()
                retire(easy, isCutStream: isCutStream)
                return try launch(exchange)
            } catch {
                exchange.cancelled(error)
                outcome = exchange.finished(CURLE_OK)
            }
        }
        byTicket[exchange.transfer.ticket] = nil
        alarms.remove(exchange.transfer.ticket)
        retire(exchange.easy, isCutStream: isCutStream && exchange.easy == easy)
        // The delegate is notified before the permit is released: a live transfer that it starts now is queued before
        // prefetch is admitted.
        exchange.transfer.delegate.ended(outcome ?? TransferEnd())
        scheduler.ended(exchange.transfer, connections: exchange.connections, isConnectionIdle: isWhole)
    }

    /// Frees a handle. The handle of a cut HTTP/2 stream is reused first to send the reset of the stream.
    private func retire(_ easy: UnsafeMutableRawPointer, isCutStream: Bool) {
        guard !isCutStream || isStopping || !resets.send(with: easy) else { return }
        discard(easy)
    }

    /// A handle serves one request only. libcurl before 8.1 keeps a pointer to the last header field of a response
    /// beyond that response, and appends a folded first line of the next response to it.
    private func discard(_ easy: UnsafeMutableRawPointer) {
        curl_easy_cleanup(easy)
        for list in lists.removeValue(forKey: easy) ?? [] { curl_slist_free_all(list) }
    }

    /// The poll timeout: milliseconds until the next alarm or `due`.
    private func milliseconds(until due: Instant?) -> Int64 {
        let now = scheduler.now()
        let next = [alarms.first?.rank, due].compactMap(\.self).min()
        let wait = next.map { now.duration(to: $0) } ?? Self.longestWait
        // Rounded up, so that the timeout has expired when the poll returns.
        return min(max(wait, .zero), Self.longestWait).wholeMilliseconds + (next == nil ? 0 : 1)
    }
}
