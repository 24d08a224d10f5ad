/// Which exchanges of a worker something happened to since its last turn, so that a turn looks at no others.
final class TurnNotes {
    private(set) var touched: [CurlExchange] = []

    func note(_ exchange: CurlExchange) { touched.append(exchange) }

    /// Takes what is noted.
    func take() -> [CurlExchange] {
        defer { touched.removeAll(keepingCapacity: true) }
        return touched
    }
}
