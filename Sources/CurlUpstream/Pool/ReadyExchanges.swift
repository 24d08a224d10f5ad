/// Queue of a worker's exchanges with events since its last iteration. Not thread-safe: used on the worker's thread
/// only.
final class ReadyExchanges {
    private(set) var touched: [CurlExchange] = []

    /// Appends an exchange; `CurlExchange.touch` appends it once per iteration.
    func note(_ exchange: CurlExchange) { touched.append(exchange) }

    /// Dequeues all exchanges.
    func take() -> [CurlExchange] {
        defer { touched.removeAll(keepingCapacity: true) }
        return touched
    }
}
