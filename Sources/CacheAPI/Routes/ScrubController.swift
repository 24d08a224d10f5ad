import CacheEngine
import HTTPTypes
import ReaderAccess

/// Routes for scrubs, which compare bytes on disk with their checksums.
struct ScrubController: Controller {
    let scrubber: Scrubber
    let live: LiveAPISettings

    private var limits: APISettings.Limits { live.values.limits }

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/scrubs", .scope(.read), readsQuery: true) { controller, request, _ in
            let query = try request.query(accepting: ["limit", "cursor", "total"])
            let page = try controller.scrubber.page(limit: try query.limit(), cursor: query.string("cursor"))
            let total = try query.wantsTotal() ? controller.scrubber.count : nil
            return .page(page.items.map(ScrubDocument.init), next: page.nextCursor, total: total)
        },
        Route(.post, "/v1/scrubs", .scope(.admin)) { controller, request, _ in
            let order = try await request.json(upTo: controller.limits.bodyBytes) { json, _ in try ScrubRequest(json) }
            let report = try controller.scrubber.start(order)
            return .json(
                ScrubDocument(report), status: .accepted,
                headers: [.location: "/v1/scrubs/\(report.id)", .retryAfter: "1"])
        },
        Route(.get, "/v1/scrubs/{scrubId}", .scope(.read)) {
            .json(ScrubDocument(try $0.scrubber.report($2.parameter("scrubId"))))
        },
    ]
}
