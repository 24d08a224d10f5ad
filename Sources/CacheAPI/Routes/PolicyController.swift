import CacheCore
import CacheEngine
import HTTPTypes
import ReaderAccess

/// Routes for the eviction policy: settings, miss ratio curve, simulations.
struct PolicyController: Controller {
    let cache: AssetCache
    let live: LiveAPISettings

    private var configuration: CacheConfiguration { cache.configuration }
    private var simulator: PolicySimulator { cache.simulator }
    private var limits: APISettings.Limits { live.values.limits }

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/policy", .scope(.read)) { controller, request, _ in
            let policy = controller.configuration.policy
            return try .revised(policy.settings.json, policy.revision, to: request)
        },
        Route(.put, "/v1/policy", .scope(.admin)) { controller, request, _ in
            try await controller.change(request, types: ["application/json"]) { _ in PolicySettings() }
        },
        Route(.patch, "/v1/policy", .scope(.admin)) { controller, request, _ in
            try await controller.change(request, types: Request.mergePatchTypes) { $0 }
        },
        Route(.get, "/v1/policy/curve", .scope(.read), readsQuery: true) { controller, request, _ in
            let query = try request.query(accepting: ["windowSeconds"])
            let window = try query.seconds("windowSeconds", in: 1...315_360_000) ?? .seconds(7 * 86400)
            return .json(PolicyCurveDocument(await controller.simulator.policyCurve(within: window)))
        },
        Route(.post, "/v1/policy/plans", .scope(.read)) { controller, request, _ in
            let policy = controller.configuration.policy.settings
            let origins = controller.configuration.mountedOrigins().map(\.origin)
            let order = try await request.json(upTo: controller.limits.bodyBytes) { json, _ in
                try PolicyPlanRequest(json, over: policy, origins)
            }
            let quotas = try controller.configuration.quotas(planning: order.policy, order.originQuotas)
            return .json(PolicyPlanDocument(try await controller.cache.evictions.plan(order.policy, quotas)))
        },
        Route(.post, "/v1/policy/simulations", .scope(.read)) { controller, request, _ in
            let policy = controller.configuration.policy.settings
            let order = try await request.json(upTo: controller.limits.bodyBytes) { json, _ in
                try SimulationRequest(json, under: policy)
            }
            let simulations =
                await controller.simulator.simulations(of: order.algorithms, at: order.capacities, within: order.window)
            return .json(SimulationDocument(simulations))
        },
    ]

    /// Applies the request's body to the settings that `base` returns, and stores the result if the conditions hold.
    ///
    /// - Parameter base: The defaults for PUT, the current settings for PATCH.
    private func change(
        _ request: Request, types: [String], base: @escaping @Sendable (PolicySettings) -> PolicySettings
    ) async throws -> Response {
        try await cache.readDesiredState()
        let policy = configuration.policy.settings
        let json = try await request.json(upTo: limits.bodyBytes, types: types) { json, _ in
            _ = try base(policy).merging(json)  // a valid body has a short tree
            return json
        }
        let conditions = RevisionConditions(request)
        // Without conditions, the body is applied again to the newer policy if another client has changed it meanwhile.
        let changed = try await conditions.repeating { () async throws(CacheError) in
            let present = configuration.policy
            _ = try conditions.precondition(at: present.revision)
            let settings = try base(present.settings).merging(json)
            return try await cache.setPolicy(
                settings, if: present.isConfigured ? .absent : .revision(present.revision))
        }
        return .json(changed.settings.json, headers: Response.entityTag(changed.revision))
    }
}
