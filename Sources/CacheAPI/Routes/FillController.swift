import CacheCore
import CacheEngine
import Hummingbird

/// Routes for upstream transfers: fills, explanations of a read, and workers.
struct FillController: Controller {
    let fills: FillRegistry
    let reader: ContentReader
    let statistics: CacheStatistics

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/fills", .scope(.read), readsQuery: true) { controller, request, _ in
            try controller.list(request)
        },
        Route(.get, "/v1/fills/{fillId}", .scope(.read)) { .json(try $0.fills.fill($2.parameter("fillId")).json) },
        Route(.delete, "/v1/fills/{fillId}", .scope(.admin)) { controller, _, context in
            try controller.fills.cancel(context.parameter("fillId"))
            return Response(status: .noContent)
        },
        Route(.get, "/v1/explain", .scope(.read), readsQuery: true) { controller, request, _ in
            try await controller.explain(request)
        },
        Route(.get, "/v1/workers", .scope(.read)) { controller, _, _ in
            .json(controller.statistics.transferLoad.json)
        },
    ]

    /// Lists the current fills page by page.
    private func list(_ request: Request) throws -> Response {
        let query = try request.query(accepting: ["origin", "assetId", "state", "limit", "cursor"])
        let page = try fills.page(
            FillQuery(
                origin: query.string("origin"), assetID: query.assetID("assetId"), stage: try query.choice("state"),
                limit: try query.limit(), cursor: query.string("cursor")))
        return .page(page.items.map(\.json), next: page.nextCursor)
    }

    /// The values of the query parameter `method`.
    private enum Method: String, CaseIterable { case get = "GET", head = "HEAD" }

    /// Explains how a read would be answered. The fields of this request count as those of the read; its range and
    /// method are query parameters.
    private func explain(_ request: Request) async throws -> Response {
        let keys = AssetReference.keys + ["assetId"]
        let query = try request.query(accepting: keys + ["range", "method"])
        let members = keys.compactMap { key in query.string(key).map { JSON.Member(key, .string($0)) } }
        let reference = try AssetReference(JSONFields(.object(members), accepting: keys))
        var fields = request.headers
        fields[.range] = query.string("range")
        let isHead = try query.choice("method", Method.self) == .head
        let explanation = try await reader.explain(reference, request: ContentRequest(isHead: isHead, fields: fields))
        return .json(explanation.json)
    }
}
