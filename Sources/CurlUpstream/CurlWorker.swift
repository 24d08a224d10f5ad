import CCurl
import CacheCore

/// One thread's loop over one multi handle: begins transfers, turns the multi, hands bodies over, keeps the timers.
final class CurlWorker {
    private typealias Instant = ContinuousClock.Instant

    private let index: Int
    private let mailbox: CurlMailbox
    private let desk: CurlDesk
    private let settings: CurlPoolSettings
    private let buffers: BufferPool
    private var exchanges: [UnsafeMutableRawPointer: CurlExchange] = [:]
    private var headers: [UnsafeMutableRawPointer: UnsafeMutablePointer<curl_slist>] = [:]
    private var idleHandles: [UnsafeMutableRawPointer] = []
    private var isStopping = false

    private static let idleHandlesKept = 16
    private static let connectionsKept = 64
    private static let longestWait = Duration.seconds(60)

    init(index: Int, mailbox: CurlMailbox, desk: CurlDesk, settings: CurlPoolSettings) {
        self.index = index
        self.mailbox = mailbox
        self.desk = desk
        self.settings = settings
        buffers = BufferPool(bytes: settings.bufferBytes)
        larder_multi_set_long(mailbox.multi, CURLMOPT_MAXCONNECTS, Self.connectionsKept)
    }

    /// Returns when told to stop, with every transfer ended.
    func run() {
        while !isStopping {
            for command in mailbox.collect() { obey(command) }
            guard !isStopping else { break }
            let due = index == 0 ? desk.look(at: .now) : nil
            turn()
            let wait = Int32(clamping: milliseconds(until: due))
            curl_multi_poll(mailbox.multi, nil, 0, wait, nil)
        }
        let left = mailbox.close()
        for exchange in Array(exchanges.values) { end(exchange, with: .poolShutDown) }
        for handle in idleHandles { curl_easy_cleanup(handle) }
        desk.abandon(left)
    }

    private func obey(_ command: CurlCommand) {
        switch command {
        case .begin(let transfer): begin(transfer)
        case .cancel(let transfer):
            guard let exchange = exchanges.values.first(where: { $0.transfer === transfer }) else { return }
            end(exchange, with: CacheError(.cancelled, "The transfer was cancelled."))
        case .ratesChanged(let origin):
            for exchange in exchanges.values where exchange.transfer.request.originName == origin {
                exchange.setRate(desk.rate(of: exchange.transfer))
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
        guard let easy = idleHandles.popLast() ?? curl_easy_init() else {
            return fail(transfer, CacheError(.internal, "There is no memory left for a transfer."))
        }
        do {
            let exchange = try CurlExchange(transfer, easy: easy, settings: settings, buffers: buffers)
            try launch(exchange)
        } catch {
            retire(easy)
            fail(transfer, error)
        }
    }

    /// Ends a transfer that came to no exchange.
    private func fail(_ transfer: CurlTransfer, _ error: CacheError) {
        transfer.delegate.ended(TransferEnd(error: error))
        desk.ended(transfer, connections: (0, 0))
    }

    /// Sets the handle up for the exchange's present hop and gives it to the multi.
    private func launch(_ exchange: CurlExchange) throws(CacheError) {
        var list: UnsafeMutablePointer<curl_slist>?
        for line in try RequestFields.lines(of: exchange.transfer.request, isOwnHost: exchange.isOwnHost) {
            guard let longer = curl_slist_append(list, line) else {
                curl_slist_free_all(list)
                throw CacheError(.internal, "There is no memory left for a request's headers.")
            }
            list = longer
        }
        curl_slist_free_all(headers.removeValue(forKey: exchange.easy))
        headers[exchange.easy] = list
        curl_easy_reset(exchange.easy)
        let rate = desk.rate(of: exchange.transfer)
        try CurlOptions.apply(to: exchange, headers: list, rate: rate)
        exchange.setRate(rate)
        guard curl_multi_add_handle(mailbox.multi, exchange.easy) == CURLM_OK else {
            throw CacheError(.internal, "The transfer could not be started.")
        }
        exchanges[exchange.easy] = exchange
    }

    private func turn() {
        for exchange in Array(exchanges.values) {
            let code = exchange.resume(at: .now)
            if code != CURLE_OK { end(exchange, code) }
        }
        var running: Int32 = 0
        curl_multi_perform(mailbox.multi, &running)
        for exchange in Array(exchanges.values) where !exchange.flush() { end(exchange, CURLE_WRITE_ERROR) }
        var left: Int32 = 0
        while let message = curl_multi_info_read(mailbox.multi, &left)?.pointee {
            guard message.msg == CURLMSG_DONE, let easy = message.easy_handle else { continue }
            if let exchange = exchanges[easy] { end(exchange, message.data.result) }
        }
        let now = Instant.now
        for exchange in Array(exchanges.values) {
            guard let timeout = exchange.timers.expired(at: now) else { continue }
            exchange.timedOut(timeout)
            end(exchange, CURLE_OPERATION_TIMEDOUT)
        }
    }

    private func end(_ exchange: CurlExchange, with error: CacheError) {
        exchange.cancelled(error)
        end(exchange, CURLE_ABORTED_BY_CALLBACK)
    }

    /// Takes the handle out of the multi; then the next hop begins, or the transfer has ended.
    private func end(_ exchange: CurlExchange, _ code: CURLcode) {
        let easy = exchange.easy
        exchanges[easy] = nil
        curl_multi_remove_handle(mailbox.multi, easy)
        var outcome = exchange.finished(code)
        if outcome == nil {
            do {
                return try launch(exchange)
            } catch {
                exchange.cancelled(error)
                outcome = exchange.finished(CURLE_OK)
            }
        }
        retire(easy)
        // The delegate first: what it starts now, live, goes before prefetch that waits for this place.
        exchange.transfer.delegate.ended(outcome ?? TransferEnd())
        desk.ended(exchange.transfer, connections: exchange.connections)
    }

    private func retire(_ easy: UnsafeMutableRawPointer) {
        curl_easy_reset(easy)
        curl_slist_free_all(headers.removeValue(forKey: easy))
        if idleHandles.count < Self.idleHandlesKept { idleHandles.append(easy) } else { curl_easy_cleanup(easy) }
    }

    private func milliseconds(until due: Instant?) -> Int64 {
        let now = Instant.now
        let next = (exchanges.values.flatMap { [$0.timers.next?.at, $0.rest] } + [due]).compactMap(\.self).min()
        let wait = next.map { now.duration(to: $0) } ?? Self.longestWait
        // Rounded up, so that the limit has run out when the wait has.
        return min(max(wait, .zero), Self.longestWait).wholeMilliseconds + (next == nil ? 0 : 1)
    }
}
