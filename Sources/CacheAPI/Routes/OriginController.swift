import CacheCore
import CacheEngine
import HTTPTypes
import Hummingbird

/// The upstreams that are mounted.
struct OriginController: Controller {
    let cache: AssetCache
    let limits: APISettings.Limits

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/origins", .scope(.read)) { controller, _, _ in
            .page(controller.cache.mountedOrigins().map(\.origin.json), next: nil)
        },
        Route(.get, "/v1/origins/{name}", .scope(.read)) { controller, _, context in
            let found = try controller.cache.origin(context.parameter("name"))
            return .json(found.origin.json, headers: Response.entityTag(found.revision))
        },
        Route(.put, "/v1/origins/{name}", .scope(.admin)) { try await $0.put($1, $2) },
        Route(.delete, "/v1/origins/{name}", .scope(.admin)) { try await $0.delete($1, $2) },
    ]

    private func put(_ request: Request, _ context: APIContext) async throws -> Response {
        let name = try context.parameter("name")
        guard Origin.isValid(name: name) else {
            throw CacheError(
                .invalidField("name"),
                "A name has 1 to 64 of a–z, 0–9, ., _ and -, and begins with one of the first two.")
        }
        let json = try await request.json(upTo: limits.bodyBytes).json
        let present = cache.mountedOrigins().first { $0.origin.name == name }
        let settings = try OriginSettings(json, name: name, present: present?.origin.settings)
        let expected = try request.expectedRevision { () throws(CacheError) in try cache.origin(name).revision }
        let put = try await cache.setOrigin(Origin(name: name, settings: settings), expectedRevision: expected)
        var headers = Response.entityTag(put.revision)
        if put.isNew { headers[.location] = "/v1/origins/\(name)" }
        return .json(put.origin.json, status: put.isNew ? .created : .ok, headers: headers)
    }

    private func delete(_ request: Request, _ context: APIContext) async throws -> Response {
        let name = try context.parameter("name")
        let expected = try request.expectedRevision { () throws(CacheError) in try cache.origin(name).revision }
        try await cache.deleteOrigin(name, expectedRevision: expected)
        return Response(status: .noContent)
    }
}
