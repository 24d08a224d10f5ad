import CCurl
import CacheCore

/// One thread's loop over one multi handle: begins transfers, turns the multi, hands bodies over, keeps the timers.
///
/// A turn looks only at exchanges that something happened to, or that something comes due for.
final class CurlWorker {
    typealias Instant = ContinuousClock.Instant

    private let index: Int
    private let mailbox: CurlMailbox
    private let desk: CurlDesk
    private let settings: CurlPoolSettings
    private let buffers: BufferPool
    private let notes = TurnNotes()
    /// By the handle of their present hop.
    private var exchanges: [UnsafeMutableRawPointer: CurlExchange] = [:]
    private var byTicket: [TransferQueue.Ticket: CurlExchange] = [:]
    private var headers: [UnsafeMutableRawPointer: UnsafeMutablePointer<curl_slist>] = [:]
    /// When to look at an exchange: never later than something comes due for it, and where that has moved on, too early.
    private var alarms = IndexedHeap<TransferQueue.Ticket, Instant>()
    private var keep: ConnectionKeep
    private var resets: StreamResets
    private var isStopping = false

    private static let longestWait = Duration.seconds(60)

    init(index: Int, mailbox: CurlMailbox, desk: CurlDesk, settings: CurlPoolSettings) {
        self.index = index
        self.mailbox = mailbox
        self.desk = desk
        self.settings = settings
        buffers = BufferPool(bytes: settings.bufferBytes)
        resets = StreamResets(multi: mailbox.multi)
        keep = ConnectionKeep(most: settings.connectionsPerWorker, at: .now)
    }

    /// Returns when told to stop, with every transfer ended.
    func run() {
        while !isStopping {
            for command in mailbox.collect() { obey(command) }
            guard !isStopping else { break }
            let due = index == 0 ? desk.look(at: .now) : nil
            if let connections = keep.change(running: exchanges.count, at: .now) {
                larder_multi_set_long(mailbox.multi, CURLMOPT_MAXCONNECTS, connections)
            }
            turn()
            let wait = Int32(clamping: milliseconds(until: due))
            curl_multi_poll(mailbox.multi, nil, 0, wait, nil)
        }
        let left = mailbox.close()
        for exchange in Array(exchanges.values) { end(exchange, with: .poolShutDown) }
        for easy in resets.handles where resets.ended(easy) { discard(easy) }
        desk.abandon(left)
    }

    private func obey(_ command: CurlCommand) {
        switch command {
        case .begin(let transfer): begin(transfer)
        case .cancel(let transfer):
            guard let exchange = byTicket[transfer.ticket] else { return }
            end(exchange, with: CacheError(.cancelled, "The transfer was cancelled."))
        case .steer(let transfer): if let exchange = byTicket[transfer.ticket] { steer(exchange) }
        case .ratesChanged:
            let sharers = Array(exchanges.values)
            let now = Instant.now
            for (exchange, rate) in zip(sharers, desk.rates(of: sharers.map(\.transfer))) {
                exchange.setRate(rate, at: now)
            }
        case .deliver(let transfer, let error): transfer.delegate.ended(TransferEnd(error: error))
        case .look: break
        case .stop: isStopping = true
        }
    }

    private func begin(_ transfer: CurlTransfer) {
        guard !transfer.isCancelled else {
            return fail(transfer, CacheError(.cancelled, "The transfer was cancelled before it began."))
        }
        var made: CurlExchange?
        do {
            let exchange = try CurlExchange(
                transfer, settings: settings, buffers: buffers, sockets: mailbox.sockets,
                notes: notes)
            made = exchange
            try launch(exchange)
        } catch {
            if let made { discard(made.easy) }
            fail(transfer, error)
        }
    }

    /// Ends a transfer that came to no exchange.
    private func fail(_ transfer: CurlTransfer, _ error: CacheError) {
        transfer.delegate.ended(TransferEnd(error: error))
        desk.ended(transfer, connections: (0, 0))
    }

    /// Sets the exchange's handle up for its present hop and gives it to the multi.
    private func launch(_ exchange: CurlExchange) throws(CacheError) {
        var list: UnsafeMutablePointer<curl_slist>?
        for line in try RequestFields.lines(of: exchange.transfer.request, isOwnHost: exchange.isOwnHost) {
            guard let longer = curl_slist_append(list, line) else {
                curl_slist_free_all(list)
                throw CacheError(.internal, "There is no memory left for a request's headers.")
            }
            list = longer
        }
        headers[exchange.easy] = list
        let rate = desk.rates(of: [exchange.transfer])[0]
        try CurlOptions.apply(to: exchange, headers: list, rate: rate)
        exchange.setRate(rate, at: .now)
        try exchange.announce()
        guard curl_multi_add_handle(mailbox.multi, exchange.easy) == CURLM_OK else {
            throw CacheError(.internal, "The transfer could not be started.")
        }
        exchanges[exchange.easy] = exchange
        byTicket[exchange.transfer.ticket] = exchange
        exchange.touch()
    }

    private func turn() {
        let due = ring(at: .now)
        for exchange in due {
            let code = exchange.setValve(at: .now)
            if code != CURLE_OK { end(exchange, code) }
        }
        var running: Int32 = 0
        curl_multi_perform(mailbox.multi, &running)
        for exchange in notes.touched where isUnderWay(exchange) { settle(exchange) }
        var left: Int32 = 0
        while let message = curl_multi_info_read(mailbox.multi, &left)?.pointee {
            guard message.msg == CURLMSG_DONE, let easy = message.easy_handle else { continue }
            if let exchange = exchanges[easy] {
                end(exchange, message.data.result, isWhole: message.data.result == CURLE_OK)
            } else if resets.ended(easy) {
                discard(easy)
            }
        }
        let now = Instant.now
        for exchange in due where isUnderWay(exchange) {
            guard let timeout = exchange.timers.expired(at: now) else { continue }
            exchange.timedOut(timeout)
            end(exchange, CURLE_OPERATION_TIMEDOUT)
        }
        for exchange in notes.take() { setAlarm(for: exchange) }
    }

    private func isUnderWay(_ exchange: CurlExchange) -> Bool { byTicket[exchange.transfer.ticket] === exchange }

    /// The exchanges whose alarm rings.
    private func ring(at now: Instant) -> [CurlExchange] {
        var due: [CurlExchange] = []
        while let alarm = alarms.first, alarm.rank <= now {
            alarms.remove(alarm.id)
            if let exchange = byTicket[alarm.id] { due.append(exchange) }
        }
        return due
    }

    private func setAlarm(for exchange: CurlExchange) {
        exchange.isTouched = false
        guard isUnderWay(exchange), let due = exchange.nextDue else { return }
        let ticket = exchange.transfer.ticket
        if let set = alarms.rank(of: ticket), set <= due { return }
        alarms.set(ticket, to: due)
    }

    /// Hands over what the turn brought, and does what is wished of the exchange.
    private func settle(_ exchange: CurlExchange) {
        guard exchange.flush() else { return end(exchange, CURLE_WRITE_ERROR) }
        steer(exchange)
    }

    /// Does what the transfer's holder wishes, as far as it can be done now.
    private func steer(_ exchange: CurlExchange) {
        let transfer = exchange.transfer
        exchange.shorten(to: transfer.wantedLength)
        if exchange.isCutShort { return end(exchange, CURLE_OK) }
        exchange.fitReceiveBuffer()
        let isHeld = exchange.isHeld
        switch exchange.hold {
        case .none:
            guard exchange.canPause, isHeld || transfer.takeYield() else {
                // Between two pieces of one turn the allowance may have grown: the flow is stopped then, and nothing is held.
                let code = exchange.isShut ? exchange.setValve(at: .now) : CURLE_OK
                return code == CURLE_OK ? () : end(exchange, code)
            }
            guard exchange.pause(at: .now) else { return end(exchange, CURLE_WRITE_ERROR) }
            guard !isHeld else { return desk.paused(transfer) }
            exchange.hold = .awaitingPlace
            desk.yielded(transfer)
        case .paused:
            guard !isHeld else { return }
            exchange.hold = .awaitingPlace
            desk.resumes(transfer)
        case .awaitingPlace:
            if isHeld {
                exchange.hold = .paused
                desk.paused(transfer)
            } else if desk.hasPlace(transfer) {
                let code = exchange.goOn(at: .now)
                if code != CURLE_OK { end(exchange, code) }
            }
        }
    }

    private func end(_ exchange: CurlExchange, with error: CacheError) {
        exchange.cancelled(error)
        end(exchange, CURLE_ABORTED_BY_CALLBACK)
    }

    /// Takes the handle out of the multi; then the next hop begins, or the transfer has ended. `isWhole`: its response has
    /// come to its end.
    private func end(_ exchange: CurlExchange, _ code: CURLcode, isWhole: Bool = false) {
        let easy = exchange.easy
        let isCutStream = !isWhole && exchange.mayBeStream
        exchanges[easy] = nil
        curl_multi_remove_handle(mailbox.multi, easy)
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
        // The delegate first: what it starts now, live, goes before prefetch that waits for this place.
        exchange.transfer.delegate.ended(outcome ?? TransferEnd())
        desk.ended(exchange.transfer, connections: exchange.connections, isConnectionIdle: isWhole)
    }

    private func retire(_ easy: UnsafeMutableRawPointer, isCutStream: Bool) {
        guard !isCutStream || isStopping || !resets.send(with: easy) else { return }
        discard(easy)
    }

    /// Handles serve one request: before 8.1, libcurl keeps a pointer to the last header field of a handle's response
    /// beyond the response, and takes a folded first line of the next one for its continuation.
    private func discard(_ easy: UnsafeMutableRawPointer) {
        curl_easy_cleanup(easy)
        curl_slist_free_all(headers.removeValue(forKey: easy))
    }

    private func milliseconds(until due: Instant?) -> Int64 {
        let now = Instant.now
        let next = [alarms.first?.rank, due].compactMap(\.self).min()
        let wait = next.map { now.duration(to: $0) } ?? Self.longestWait
        // Rounded up, so that the limit has run out when the wait has.
        return min(max(wait, .zero), Self.longestWait).wholeMilliseconds + (next == nil ? 0 : 1)
    }
}
