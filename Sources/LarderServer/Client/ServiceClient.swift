import CacheAPI
import CacheCore

/// A document of the API with its text as it was sent.
struct APIDocument<Value> {
    let value: Value
    /// Without a line feed at the end.
    let text: String
}

/// Blocking client of the API. Not thread-safe: used on the thread of a command.
final class ServiceClient {
    /// The pause before a lost stream is requested again.
    private static let reconnectPause = Duration.seconds(1)

    let address: ServiceAddress
    private let connection: CurlConnection
    /// The permissions of the token, once they were read.
    private var knownAccess: TokenAccess?

    init(to address: ServiceAddress, token: MaskedSecret?, authorities: String?) throws(ClientError) {
        self.address = address
        connection = try CurlConnection(to: address, token: token, trust: .authorities(file: authorities))
    }

    /// The permissions of the token. Nil: the token cannot read them, or the service is older than this client.
    func access() throws -> TokenAccess? {
        if let knownAccess { return knownAccess }
        do {
            knownAccess = TokenAccess(try document(ServiceRequest(.get, "/v1/access")).value)
        } catch let error as ClientError {
            guard case .problem(403...404, _) = error.kind else { throw error }
        }
        return knownAccess
    }

    /// Sends the request and returns the document of its response. Throws `ClientError` for error statuses, too.
    func document<Value: Decodable>(_ request: ServiceRequest) throws -> APIDocument<Value> {
        let collector = ResponseCollector(url: address.description)
        try connection.perform(request, into: collector)
        guard (200..<300).contains(collector.status) else { throw failure(collector) }
        let lines = String(decoding: collector.body, as: UTF8.self).split(separator: "\n")
        return APIDocument(value: try decoded(collector.body), text: lines.joined(separator: " "))
    }

    /// Decodes a document of the service. Members that this version does not declare are ignored.
    func decoded<Value: Decodable>(_ bytes: some Sequence<UInt8>) throws(ClientError) -> Value {
        do {
            return try JSONParser.parse(bytes).decode(isStrict: false)
        } catch {
            throw ClientError.malformed(from: "\(address)")
        }
    }

    /// Sends a request whose response has no content.
    func send(_ request: ServiceRequest) throws {
        let collector = ResponseCollector(url: address.description)
        try connection.perform(request, into: collector)
        guard (200..<300).contains(collector.status) else { throw failure(collector) }
    }

    /// Reads pages of a list until `limit` items are read or the list ends, and passes each to `onPage`. Returns
    /// whether the list has more items.
    func pages<Item: Decodable>(
        _ path: String, of type: Item.Type, query: [(name: String, value: String?)] = [], limit: Int,
        onPage: (APIDocument<PageDocument<Item>>) throws -> Void
    ) throws -> Bool {
        var (left, cursor): (Int, String?) = (limit, nil)
        repeat {
            let size = String(min(left, 1000))
            let page: APIDocument<PageDocument<Item>> = try document(
                ServiceRequest(.get, path, query: query + [("limit", size), ("cursor", cursor)]))
            try onPage(page)
            left -= page.value.items.count
            cursor = page.value.nextCursor
        } while left > 0 && cursor != nil
        return cursor != nil
    }

    /// Passes the events of a stream to `onEvent` until that stops the stream, or the service ends it with status 204.
    ///
    /// A stream that is lost is requested again after its last event; `onLoss` is called before. Throws if the first
    /// attempt fails, or if the service cannot be reached for `patience`.
    func follow(
        _ request: ServiceRequest, patience: Duration = .seconds(60), onLoss: (ClientError) -> Void,
        onEvent: @escaping (ServerSentEvent) throws -> ResponseCollector.Continuation
    ) throws {
        var request = request
        var lastContact: ContinuousClock.Instant?
        while true {
            let collector = ResponseCollector(url: address.description) { event in
                request.lastEventID = event.id
                return try onEvent(event)
            }
            let loss: ClientError
            do {
                let attempt = request
                defer { if collector.status == 200 { lastContact = ContinuousClock.now } }
                try connection.perform(attempt, into: collector)
                guard [200, 204].contains(collector.status) else { throw failure(collector) }
                guard collector.status == 200, !collector.isStopped else { return }
                loss = ClientError(.unreachable, "\(address) ended the stream of events.")
            } catch let error as ClientError where error.isTemporary {
                loss = error
            }
            guard let lastContact, lastContact.duration(to: ContinuousClock.now) < patience else { throw loss }
            onLoss(loss)
            try Interruption.pause(for: Self.reconnectPause)
        }
    }

    private func failure(_ collector: ResponseCollector) -> ClientError {
        ClientError(status: collector.status, body: collector.body, from: address.description)
    }
}
