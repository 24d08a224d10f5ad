import CacheCore
import CacheEngine
import HTTPTypes
import ReaderAccess

/// Routes for the stream of events.
struct EventController: Controller {
    let events: EventLog
    let history: RequestHistory
    let tickets: EventTickets

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/events", .ticketOrRead, readsQuery: true, limits: .checked) { try $0.events($1, $2) },
        Route(.post, "/v1/events/tickets", .scope(.read)) { controller, _, context in
            let ticket = try controller.tickets.issue(for: context.permission)
            return .json(
                EventTicketDocument(ticket: ticket.text, expiresAt: ticket.expiresAt), status: .created)
        },
    ]

    /// The kept events of some topics as a list, or with `Accept: text/event-stream` as a stream that goes on.
    private func events(_ request: Request, _ context: APIContext) throws -> Response {
        let query = try request.query(accepting: ["topics", "after", "ticket"] + RequestFilter.parameters)
        var context = context
        if let ticket = query.string("ticket") {
            let permission = try tickets.redeem(ticket)
            context.permission = permission
            context.logContext.update { $0.reader = permission?.reader }
        }
        let topics = try Self.topics(query.string("topics"))
        let requests = try Self.requests(query, topics, &context)
        let after = try query.integer("after", in: 0...Int64.max)
        // A stream that is requested again has the same query: its last event is in the field.
        let last = request.headers[.lastEventID].flatMap { Int64($0) } ?? after
        if request.prefers("text/event-stream", over: "application/json") {
            guard let (filter, showsClients) = requests else {
                return try Response.events(EventLogRenderer(topics: topics, last: last), context).varyingByType
            }
            return try Response.events(
                RequestEventRenderer(
                    topics: topics, filter: filter, showsClients: showsClients, history: history, last: last), context
            ).varyingByType
        }
        let present = events.lastID
        let found = events.events(after: last, topics: topics.subtracting([.requests]))
        var list = EventListDocument(
            items: found.events.filter { $0.id <= present }.map(EventDocument.init), lastId: present,
            isComplete: found.isComplete)
        if let (filter, showsClients) = requests {
            let part = history.part(after: last ?? .min, upTo: present)
            let matching = part.entries.filter { filter.matches($0.line) }
            list.items += matching.suffix(RequestEventRenderer.perSecond).map {
                .request($0, showsClient: showsClients)
            }
            list.items.sort { $0.id < $1.id }
            if matching.count > RequestEventRenderer.perSecond { list.isComplete = false }
            if let last, let discarded = part.lastDiscarded, discarded > last { list.isComplete = false }
        }
        return Response.json(list).varyingByType
    }

    /// The conditions of the topic `requests`, and whether the reader sees addresses of clients; nil without the topic.
    ///
    /// The other topics show all assets: readers with limits are refused. The topic shows the requests of all readers: a
    /// reader without limits needs the scope `admin`.
    private static func requests(
        _ query: QueryFields, _ topics: Set<CacheEvent.Topic>, _ context: inout APIContext
    ) throws(CacheError) -> (filter: RequestFilter, showsClients: Bool)? {
        let reader = context.permission?.reader
        if let reader, reader.isLimited, topics != [.requests] {
            throw reader.refusal("the events of topics other than requests")
        }
        guard topics.contains(.requests) else {
            if let name = RequestFilter.parameters.first(where: { query.string($0) != nil }) {
                throw .invalid(name, "The parameter selects events of the topic requests; name it in topics.")
            }
            return nil
        }
        if let reader, !AccessRules.Need.requests.isMet(by: reader) {
            throw CacheError(
                .tokenScope,
                "The token \(reader.id) has the scope \(reader.scope.rawValue); the topic requests needs admin.",
                challenge: BearerChallenge.insufficientScope(.admin))
        }
        context.permission?.need = .requests
        return (try RequestFilter(query, for: reader), reader?.seesClients ?? true)
    }

    /// The topics of a comma-separated list; without one, all but `stats` and `requests`.
    private static func topics(_ text: String?) throws(CacheError) -> Set<CacheEvent.Topic> {
        guard let text else { return Set(CacheEvent.Topic.allCases).subtracting([.stats, .requests]) }
        var topics: Set<CacheEvent.Topic> = []
        for name in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let topic = CacheEvent.Topic(rawValue: String(name)) else {
                let names = CacheEvent.Topic.allCases.map(\.rawValue).joined(separator: ", ")
                throw CacheError(.invalidField("topics"), "A comma-separated list of \(names) is expected here.")
            }
            topics.insert(topic)
        }
        return topics
    }
}

extension Request {
    /// Whether `Accept` names a media type itself, not by a wildcard, and does not prefer the one that is sent otherwise.
    func prefers(_ type: String, over other: String) -> Bool {
        WeightedMembers(headers[values: .accept]).prefers(type, over: other)
    }
}

extension HTTPFields {
    /// Adds a field of requests to `Vary`, on one line.
    mutating func vary(by name: String) { self[.vary] = self[.vary].map { "\($0), \(name)" } ?? name }
}

extension Response {
    /// The response with the note that it depends on `Accept`.
    var varyingByType: Response {
        var response = self
        response.headers.vary(by: "Accept")
        return response
    }
}
