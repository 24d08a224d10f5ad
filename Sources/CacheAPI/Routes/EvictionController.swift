import CacheCore
import CacheEngine
import HTTPTypes
import ReaderAccess

/// Routes for evictions and purges.
struct EvictionController: Controller {
    let cache: AssetCache
    let live: LiveAPISettings
    let readers: ReaderLimits
    let clock: any Clock<Duration>

    private var evictions: EvictionAdministration { cache.evictions }
    private var limits: APISettings.Limits { live.values.limits }

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/evictions", .scope(.read), readsQuery: true) { controller, request, _ in
            try await controller.list(request)
        },
        Route(.get, "/v1/evictions/next", .scope(.read), readsQuery: true) { controller, request, _ in
            try await controller.next(request)
        },
        Route(.post, "/v1/evictions", .scope(.admin)) { controller, request, context in
            let order = try await request.json(upTo: controller.limits.bodyBytes) { json, _ in try EvictRequest(json) }
            return .json(
                EvictionReportDocument(
                    try await controller.evictions.evict(
                        order.goal, isDryRun: order.isDryRun, by: context.reader?.owner)))
        },
        Route(.post, "/v1/purges", .scope(.write), limits: .checked) { try await $0.purge($1, $2) },
        Route(.get, "/v1/purges/{planId}", .scope(.read), limits: .checked) {
            .json(PurgePlanDocument(try $0.evictions.plan(await $0.plan($2))))
        },
        Route(.post, "/v1/purges/{planId}/commit", .scope(.write), limits: .checked) { controller, request, context in
            let runsLater = Preferences(request).respondsLater
            let (progress, number) = try await controller.cache.commitPurge(
                controller.plan(context), runsLater: runsLater)
            let purge = try await controller.waiting(for: number, request)
            return progress.isInBackground
                ? accepted(progress, purge, asRequested: runsLater)
                : .json(PurgePlanDocument(progress, purge))
        },
        Route(.delete, "/v1/purges/{planId}", .scope(.write), limits: .checked) { controller, _, context in
            try controller.evictions.cancel(await controller.plan(context))
            return Response(status: .noContent)
        },
    ]

    /// Purges as requested. In a fleet the response has the progress of the other nodes after the time that `Prefer: wait`
    /// grants.
    private func purge(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.json(upTo: limits.bodyBytes) { json, _ in try PurgeRequest(json) }
        try await readers.check(order, for: context.reader)
        let runsLater = Preferences(request).respondsLater
        let (report, number) = try await cache.purge(order, runsLater: runsLater, by: context.reader?.owner)
        let purge = try await waiting(for: number, request)
        guard report.isInBackground, let id = report.planID else {
            return .json(EvictionReportDocument(report, purge))
        }
        return Self.accepted(try evictions.plan(id), purge, asRequested: runsLater)
    }

    private func waiting(for number: Int64?, _ request: Request) async throws(CacheError) -> FleetPurgeDocument? {
        try await FleetPurgeDocument.waiting(for: number, of: cache, request, clock: clock)
    }

    /// The response 202 for a purge that has taken effect. `asRequested`: the request preferred it (RFC 7240 §4.1).
    private static func accepted(
        _ plan: PurgePlan.Progress, _ purge: FleetPurgeDocument?, asRequested: Bool
    ) -> Response {
        var response = Response.json(
            PurgePlanDocument(plan, purge), status: .accepted,
            headers: [.location: "/v1/purges/\(plan.planID)", .retryAfter: "1"])
        if asRequested { response.headers[.preferenceApplied] = "respond-async" }
        return response
    }

    /// The plan in the path. Throws `.tokenScope` unless it belongs to the reader, or contains only assets inside its
    /// limits.
    private func plan(_ context: APIContext) async throws(CacheError) -> String {
        let id = try context.parameter("planId")
        if let reader = context.reader, try await !evictions.isOpen(id, to: reader.owner) {
            throw reader.refusal("this plan")
        }
        return id
    }

    /// Lists past evictions page by page.
    private func list(_ request: Request) async throws -> Response {
        let query = try request.query(accepting: ["origin", "assetId", "reason", "limit", "cursor", "total"])
        let list = EvictionQuery(
            origin: query.string("origin"), assetID: try query.assetID("assetId"),
            reason: try query.choice("reason"), limit: try query.limit(), cursor: query.string("cursor"))
        let page = try await evictions.page(list)
        let total = try query.wantsTotal() ? try await evictions.count(list) : nil
        return .page(page.items.map(EvictionDocument.init), next: page.nextCursor, total: total)
    }

    /// Lists the segments that would be evicted next to free `bytes` (default 256 MiB).
    private func next(_ request: Request) async throws -> Response {
        let query = try request.query(accepting: ["bytes", "limit"])
        let bytes = try query.integer("bytes", in: 1...Int64.max) ?? 256 << 20
        let candidates = try await evictions.next(toFree: bytes, limit: try query.limit())
        return .page(candidates.map { EvictionCandidateDocument($0, at: evictions.now) }, next: nil)
    }
}
