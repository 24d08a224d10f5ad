import CacheCore
import CacheEngine
import HTTPTypes
import ReaderAccess

/// Routes for probes: they ask the upstream for an asset's metadata.
struct ProbeController: Controller {
    let prober: Prober
    let live: LiveAPISettings
    let readers: ReaderLimits

    /// The number of concurrent probes of one request.
    private static let width = 8

    private var limits: APISettings.Limits { live.values.limits }

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/probe", .scope(.read), readsQuery: true, limits: .checked) {
            try await $0.probe(query: $1, $2)
        },
        Route(.post, "/v1/probe", .scope(.read), limits: .checked) { try await $0.probe(body: $1, $2) },
    ]

    /// Probes the asset in the query.
    private func probe(query request: Request, _ context: APIContext) async throws -> Response {
        let query = try request.query(accepting: ["url", "key", "origin", "path", "timeoutSeconds", "refresh"])
        let timeout = try query.seconds("timeoutSeconds", in: 0.001...300)
        let json = JSON(present: [
            "url": query.string("url").map(JSON.string), "key": query.string("key").map(JSON.string),
            "origin": query.string("origin").map(JSON.string), "path": query.string("path").map(JSON.string),
            "timeoutSeconds": timeout.map { .number($0.inSeconds) },
            "refresh": try query.bool("refresh").map(JSON.bool),
        ])
        return try await probe(ProbeRequest(json), request, context)
    }

    /// Probes the assets in the body.
    private func probe(body request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.json(upTo: limits.bodyBytes) { json, _ in try ProbeRequest(json) }
        return try await probe(order, request, context)
    }

    /// Runs the probes until the client disconnects. One asset gives a report or a problem; a list gives a list of
    /// both.
    private func probe(_ order: ProbeRequest, _ request: Request, _ context: APIContext) async throws -> Response {
        let order = order.named { prober.named($0) }
        for item in order.items { try await readers.check(item.reference, for: context.reader) }
        guard order.isMany else {
            let outcome = try await whileClientStays(context.disconnection) { await self.outcome(order.items[0]) }
            switch outcome {
            case .success(let report): return .json(ProbeDocument(report))
            case .failure(let failure): return problem(failure, request, context).response
            }
        }
        let documents = try await whileClientStays(context.disconnection) {
            await self.documents(order.items, request, context)
        }
        return .json(ListDocument(items: documents))
    }

    /// Runs at most ``width`` probes at once. Returns one document for each item, in the order of the items.
    private func documents(
        _ items: [ProbeRequest.Item], _ request: Request, _ context: APIContext
    ) async -> [ProbeResultDocument] {
        await items.mapConcurrently(atMost: Self.width) { item in
            switch await outcome(item) {
            case .success(let report): .report(ProbeDocument(report))
            case .failure(let failure): .problem(problem(failure, request, context).document)
            }
        }
    }

    /// Runs one probe.
    private func outcome(_ item: ProbeRequest.Item) async -> Result<ProbeReport, ProbeFailure> {
        do {
            return .success(try await prober.probe(item.reference, timeout: item.timeout, refresh: item.refresh))
        } catch {
            return .failure(error)
        }
    }

    /// The problem document for a failed probe.
    private func problem(_ failure: ProbeFailure, _ request: Request, _ context: APIContext) -> Problem {
        context.logContext.update { $0.outcome = failure.error.code.name }
        return Problem(
            failure.error, instance: request.path, requestID: context.requestID, probe: failure)
    }
}
