import CacheCore
import CacheEngine
import HTTPTypes
import ReaderAccess

/// Routes for the stream of events.
struct EventController: Controller {
    let events: EventLog
    let tickets: EventTickets

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/events", .ticketOrRead, readsQuery: true) { try $0.events($1, $2) },
        Route(.post, "/v1/events/tickets", .scope(.read)) { controller, _, context in
            let ticket = try controller.tickets.issue(for: context.permission)
            return .json(
                EventTicketDocument(ticket: ticket.text, expiresAt: ticket.expiresAt), status: .created)
        },
    ]

    /// The kept events of some topics as a list, or with `Accept: text/event-stream` as a stream that goes on.
    private func events(_ request: Request, _ context: APIContext) throws -> Response {
        let query = try request.query(accepting: ["topics", "after", "ticket"])
        var context = context
        if let ticket = query.string("ticket") {
            let permission = try tickets.redeem(ticket)
            context.permission = permission
            context.logContext.update { $0.reader = permission?.reader }
        }
        let topics = try Self.topics(query.string("topics"))
        let after = try query.integer("after", in: 0...Int64.max)
        // A stream that is requested again has the same query: its last event is in the field.
        let last = request.headers[.lastEventID].flatMap { Int64($0) } ?? after
        if request.prefers("text/event-stream", over: "application/json") {
            return try Response.events(EventLogRenderer(topics: topics, last: last), context).varyingByType
        }
        let found = events.events(after: last, topics: topics)
        return Response.json(
            EventListDocument(
                items: found.events.map(EventDocument.init), lastId: found.lastID, isComplete: found.isComplete)
        ).varyingByType
    }

    /// The topics of a comma-separated list; without one, all but `stats`.
    private static func topics(_ text: String?) throws(CacheError) -> Set<CacheEvent.Topic> {
        guard let text else { return Set(CacheEvent.Topic.allCases).subtracting([.stats]) }
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
