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
    private var isStopping = false

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
        var made: CurlExchange?
        do {
            let exchange = try CurlExchange(transfer, settings: settings, buffers: buffers, sockets: mailbox.sockets)
            made = exchange
            try launch(exchange)
        } catch {
            if let made { retire(made.easy) }
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
                try exchange.renewHandle()
                retire(easy)
                return try launch(exchange)
            } catch {
                exchange.cancelled(error)
                outcome = exchange.finished(CURLE_OK)
            }
        }
        retire(exchange.easy)
        // The delegate first: what it starts now, live, goes before prefetch that waits for this place.
        exchange.transfer.delegate.ended(outcome ?? TransferEnd())
        desk.ended(exchange.transfer, connections: exchange.connections)
    }

    /// Handles serve one request: before 8.1, libcurl keeps a pointer to the last header field of a handle's response
    /// beyond the response, and takes a folded first line of the next one for its continuation.
    private func retire(_ easy: UnsafeMutableRawPointer) {
        curl_easy_cleanup(easy)
        curl_slist_free_all(headers.removeValue(forKey: easy))
    }

    private func milliseconds(until due: Instant?) -> Int64 {
        let now = Instant.now
        let next = (exchanges.values.flatMap { [$0.timers.next?.at, $0.rest] } + [due]).compactMap(\.self).min()
        let wait = next.map { now.duration(to: $0) } ?? Self.longestWait
        // Rounded up, so that the limit has run out when the wait has.
        return min(max(wait, .zero), Self.longestWait).wholeMilliseconds + (next == nil ? 0 : 1)
    }
}
