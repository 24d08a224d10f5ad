import CacheCore
import CacheEngine
import HTTPTypes
import ReaderAccess

/// Routes for the last ended requests.
struct RequestController: Controller {
    let history: RequestHistory
    let events: EventLog

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/requests", .requests, readsQuery: true, limits: .checked) { try $0.list($1, $2) }
    ]

    private static let list = "requests"

    /// Lists the kept requests that the reader may see, newest first, page by page.
    private func list(_ request: Request, _ context: APIContext) throws -> Response {
        let query = try request.query(accepting: RequestFilter.parameters + ["limit", "cursor", "total"])
        let (filter, limit) = (try RequestFilter(query, for: context.reader), try query.limit())
        let end = try query.string("cursor").map { text throws(CacheError) in
            try PageCursor(text, list: Self.list).value
        }
        let wantsTotal = try query.wantsTotal()
        let matching = history.part(upTo: events.lastID).entries.reversed().filter { filter.matches($0.line) }
        let page = matching.lazy.filter { end.map { [id = $0.id] in id < $0 } ?? true }.prefix(limit + 1)
        let items = Array(page)
        let next = items.count > limit ? PageCursor(list: Self.list, value: items[limit - 1].id).text : nil
        let showsClient = context.reader?.seesClients ?? true
        return .page(
            items.prefix(limit).map { RequestDocument($0, showsClient: showsClient) }, next: next,
            total: wantsTotal ? matching.count : nil)
    }
}

extension Reader {
    /// Whether the reader may see addresses of clients.
    var seesClients: Bool { permits(.admin) && !isLimited }
}
