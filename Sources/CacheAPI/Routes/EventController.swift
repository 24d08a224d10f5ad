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
        let last = try query.integer("after", in: 0...Int64.max) ?? request.headers[.lastEventID].flatMap { Int64($0) }
        if request.accepts("text/event-stream") {
            return try .events(EventLogRenderer(topics: topics, last: last), context)
        }
        let found = events.events(after: last, topics: topics)
        return .json(
            EventListDocument(
                items: found.events.map(EventDocument.init), lastId: found.lastID, isComplete: found.isComplete))
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
    /// Whether `Accept` names this media type itself; wildcards do not count.
    func accepts(_ type: String) -> Bool {
        let ranges = headers[values: .accept].flatMap({ FieldText.members(of: $0) })
        return ranges.contains { MediaType.essence(String($0)) == type }
    }
}
