import CacheCore
import CacheEngine
import HTTPTypes
import ReaderAccess

/// Routes for statistics and Prometheus metrics.
struct StatsController: Controller {
    let cache: AssetCache
    let load: AdmissionLimits
    let recorder: RequestRecorder
    let source: any ConfigurationSource
    let version: String

    private var readers: ReaderFigures { recorder.readers }
    private var statistics: CacheStatistics { cache.statistics }

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/stats", .scope(.read)) { controller, request, _ in
            let (stats, readers) = (try await controller.stats(), controller.readers.snapshot())
            guard request.prefers("text/csv", over: "application/json") else {
                return Response.json(stats.document(readers: readers)).varyingByType
            }
            return Response.text(
                readers.csv(pricePerGigabyte: stats.pricePerGigabyte), type: "text/csv; charset=utf-8; header=present"
            ).varyingByType
        },
        Route(.get, "/v1/fleet/stats", .scope(.read)) { controller, request, _ in
            .json(try await controller.fleet(request))
        },
        Route(.get, "/v1/stats/history", .scope(.read), readsQuery: true) { try await $0.history($1, $2) },
        Route(.get, "/v1/stats/top", .scope(.read), readsQuery: true) { try $0.top($1, $2) },
        Route(.get, "/v1/stats/live", .scope(.read), readsQuery: true) { try $0.live($1, $2) },
        Route(.get, "/metrics", .scope(.read)) { controller, request, _ in
            let format: PrometheusText.Format =
                request.prefers("application/openmetrics-text", over: "text/plain") ? .openMetrics : .prometheus
            let report = StatsReport(
                try await controller.stats(), version: controller.version, readers: controller.readers.snapshot(),
                responses: controller.recorder.responses.snapshot, process: ProcessFigures.current())
            return Response.text(report.prometheus(format), type: format.mediaType).varyingByType
        },
    ]

    /// The statistics of all nodes. The client's credentials are sent to the others, which check them.
    private func fleet(_ request: Request) async throws(CacheError) -> FleetStatisticsDocument {
        let own = try JSONParser.parse(try await stats().document(readers: readers.snapshot()).jsonBytes)
        let others = await cache.peers.documents(at: "/v1/stats", authorization: request.headers[.authorization])
        return FleetStatisticsDocument(own: own, others: others)
    }

    /// The statistics of the cache together with those of the HTTP server.
    private func stats() async throws(CacheError) -> StatsSnapshot {
        var stats = try await statistics.snapshot()
        stats.admission = load.figures
        stats.reload = source.figures
        stats.isReady = cache.readiness == .ready && !cache.storeIsGone
        return stats
    }

    /// The statistics of past intervals. `stepSeconds` is a multiple of 60, the resolution of the history.
    private func history(_ request: Request, _ context: APIContext) async throws -> Response {
        let query = try request.query(accepting: ["windowSeconds", "stepSeconds"])
        let window = try query.seconds("windowSeconds", in: 60...86_400) ?? .seconds(3600)
        let step = try query.seconds("stepSeconds", in: 60...86_400) ?? .seconds(60)
        guard step.components.seconds % 60 == 0, step.components.attoseconds == 0 else {
            throw CacheError(.invalidField("stepSeconds"), "The step must be a multiple of 60 seconds.")
        }
        let steps = try await statistics.history(window: window, step: step)
        return .json(ListDocument(items: steps.map(\.document)))
    }

    /// The statistics of the last seconds, as a document or, with `Accept: text/event-stream`, as a stream.
    private func live(_ request: Request, _ context: APIContext) throws -> Response {
        let query = try request.query(accepting: ["windowSeconds"])
        let window = Int(try query.integer("windowSeconds", in: 1...Int64(LiveStatistics.length)) ?? 900)
        let seconds = statistics.live.seconds(last: window)
        guard request.prefers("text/event-stream", over: "application/json") else {
            return Response.json(LiveStatisticsDocument(seconds)).varyingByType
        }
        let seen = request.headers[.lastEventID].flatMap { Int64($0) }.map { Timestamp(seconds: $0) }
        let start = seconds.first.map { $0.at - .seconds(1) } ?? Timestamp(milliseconds: 0)
        return try Response.events(
            LiveSecondRenderer(live: statistics.live, last: min(max(seen ?? start, start), seconds.last?.at ?? start)),
            context
        ).varyingByType
    }

    /// The assets with the highest use.
    private func top(_ request: Request, _ context: APIContext) throws -> Response {
        let query = try request.query(accepting: ["by", "limit"])
        let limit = try query.integer("limit", in: 1...1000) ?? 20
        let rows = statistics.top(by: try query.choice("by") ?? .served, limit: Int(limit))
        return .json(ListDocument(items: rows.map(TopAssetDocument.init)))
    }
}
