import CacheCore
import CacheEngine
import HTTPTypes
import ReaderAccess

/// Routes for mounted origins.
struct OriginController: Controller {
    let cache: AssetCache
    let live: LiveAPISettings

    private var configuration: CacheConfiguration { cache.configuration }
    private var limits: APISettings.Limits { live.values.limits }

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/origins", .scope(.read)) { controller, _, context in
            .page(
                controller.configuration.mountedOrigins().map { controller.document($0.origin, context) }, next: nil)
        },
        Route(.get, "/v1/origins/{name}", .scope(.read)) { controller, request, context in
            let found = try controller.configuration.origin(context.parameter("name"))
            return try .revised(controller.document(found.origin, context), found.revision, to: request)
        },
        Route(.put, "/v1/origins/{name}", .scope(.admin)) { try await $0.put($1, $2) },
        Route(.patch, "/v1/origins/{name}", .scope(.admin)) { try await $0.patch($1, $2) },
        Route(.delete, "/v1/origins/{name}", .scope(.admin)) { controller, request, context in
            let name = try context.parameter("name")
            try await controller.cache.readDesiredState()
            let revision = try controller.configuration.origin(name).revision
            let precondition = try RevisionConditions(request).precondition(at: revision)
            try await controller.cache.deleteOrigin(name, if: precondition)
            return Response(status: .noContent)
        },
        Route(.post, "/v1/origins/{name}/test", .scope(.admin)) { try await $0.test($1, $2) },
        Route(.delete, "/v1/origins/{name}/observations", .scope(.admin)) { controller, _, context in
            try controller.configuration.forgetObservations(of: context.parameter("name"))
            return Response(status: .noContent)
        },
        Route(.delete, "/v1/origins/{name}/circuits", .scope(.admin)) { controller, _, context in
            try controller.configuration.closeCircuits(of: context.parameter("name"))
            return Response(status: .noContent)
        },
    ]

    /// The `Origin` document of a mounted origin, with its provenance, observations and addresses.
    private func document(_ origin: Origin, _ context: APIContext) -> OriginDocument {
        OriginDocument(
            origin, configuration.report(on: origin), isForAdmin: context.reader?.permits(.admin) ?? true)
    }

    /// Requests a file with the given settings, or those of the mounted origin, and keeps nothing.
    private func test(_ request: Request, _ context: APIContext) async throws -> Response {
        let name = try context.parameter("name")
        let (present, order) = try await request.json(upTo: limits.bodyBytes) { [configuration] json, _ in
            let present = configuration.mountedOrigins().first { $0.origin.name == name }?.origin
            return (present, try OriginTestRequest(json, name: name, present: present?.settings))
        }
        let settings = try order.settings ?? configuration.origin(name).origin.settings
        let origin = Origin(name: name, settings: settings)
        try await configuration.check(origin)
        let test = try await whileClientStays(context.disconnection) {
            [prober = cache.prober] () async throws(CacheError) in
            try await prober.test(origin, path: order.path, present: present)
        }
        return .json(OriginTestDocument(test))
    }

    /// Creates or replaces an origin, if the request's conditions hold.
    private func put(_ request: Request, _ context: APIContext) async throws -> Response {
        let name = try context.parameter("name")
        guard Origin.isValid(name: name) else {
            throw CacheError.invalid(
                "name", "An origin name has 1 to 64 characters of a–z, 0–9, ., _ and -; the first is a–z or 0–9.")
        }
        try await cache.readDesiredState()
        let (present, settings) = try await request.json(upTo: limits.bodyBytes) { [configuration] json, _ in
            let present = configuration.mountedOrigins().first { $0.origin.name == name }
            return (present, try OriginSettings(json, name: name, present: present?.origin.settings))
        }
        let precondition = try RevisionConditions(request).precondition(at: present?.revision)
        let put = try await cache.setOrigin(Origin(name: name, settings: settings), if: precondition)
        return answer(put.origin, put.revision, isNew: put.isNew, context)
    }

    /// Applies a merge patch (RFC 7396) to an origin.
    ///
    /// Without conditions, concurrent changes are both kept:
    /// 1. The settings and their revision are read, and the patch is applied.
    /// 2. The result is stored if the revision is unchanged.
    /// 3. If another client has changed the origin, the patch is applied again, to the newer settings.
    private func patch(_ request: Request, _ context: APIContext) async throws -> Response {
        let (name, conditions) = (try context.parameter("name"), RevisionConditions(request))
        try await cache.readDesiredState()
        let patch = try await request.json(upTo: limits.bodyBytes, types: Request.mergePatchTypes) {
            [configuration] json, _ in
            let present = try configuration.origin(name)
            _ = try present.origin.settings.merging(json, name: name)  // a valid body has a short tree
            return json
        }
        let changed = try await conditions.repeating { () async throws(CacheError) in
            let present = try configuration.origin(name)
            _ = try conditions.precondition(at: present.revision)
            let settings = try present.origin.settings.merging(patch, name: name)
            return try await cache.setOrigin(
                Origin(name: name, settings: settings), if: .revision(present.revision))
        }
        return answer(changed.origin, changed.revision, isNew: false, context)
    }

    /// The response with the stored origin and its revision.
    private func answer(_ origin: Origin, _ revision: Int64, isNew: Bool, _ context: APIContext) -> Response {
        var headers = Response.entityTag(revision)
        if isNew { headers[.location] = "/v1/origins/\(origin.name)" }
        return .json(document(origin, context), status: isNew ? .created : .ok, headers: headers)
    }
}
