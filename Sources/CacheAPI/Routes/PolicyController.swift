import CacheCore
import CacheEngine
import Hummingbird

/// The eviction policy in force.
struct PolicyController: Controller {
    let cache: AssetCache
    let limits: APISettings.Limits

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/policy", .scope(.read)) { controller, _, _ in
            let policy = controller.cache.policy()
            return .json(policy.settings.json, headers: Response.entityTag(policy.revision))
        },
        Route(.put, "/v1/policy", .scope(.admin)) { controller, request, _ in
            try await controller.change(request, types: ["application/json"]) { _ in PolicySettings() }
        },
        Route(.patch, "/v1/policy", .scope(.admin)) { controller, request, _ in
            let types = ["application/json", "application/merge-patch+json"]
            return try await controller.change(request, types: types) { $0 }
        },
        Route(.get, "/v1/policy/curve", .scope(.read), readsQuery: true) { controller, request, _ in
            let query = try request.query(accepting: ["windowSeconds"])
            let window = try query.seconds("windowSeconds", in: 1...315_360_000) ?? .seconds(7 * 86400)
            return .json(await controller.cache.policyCurve(within: window).json)
        },
        Route(.post, "/v1/policy/simulations", .scope(.read)) { controller, request, _ in
            let json = try await request.json(upTo: controller.limits.bodyBytes).json
            let order = try TrialOrder(json, under: controller.cache.policy().settings)
            let trials = await controller.cache.trials(of: order.algorithms, at: order.capacities, within: order.window)
            return .json(trials.json)
        },
    ]

    private func change(
        _ request: Request, types: [String], base: @Sendable (PolicySettings) -> PolicySettings
    ) async throws -> Response {
        let json = try await request.json(upTo: limits.bodyBytes, types: types).json
        let expected = try request.expectedRevision { cache.policy().revision }
        return try await change(json, expected: expected, tries: 5, base: base)
    }

    /// Puts the body's fields over `base` of the present policy. Without `If-Match` a change made in between is not
    /// lost: the revision read must still be the one in force, else our fields go over the newer one.
    private func change(
        _ json: JSON, expected: Int64?, tries: Int, base: @Sendable (PolicySettings) -> PolicySettings
    ) async throws -> Response {
        let present = cache.policy()
        let settings = try base(present.settings).merging(json)
        let revision = expected ?? present.revision
        do {
            // Revision 0 is the policy nobody has stored yet: there is nothing to compare with.
            let isFirst = revision == 0 && present.revision == 0
            let changed = try await cache.setPolicy(settings, expectedRevision: isFirst ? nil : revision)
            return .json(changed.settings.json, headers: Response.entityTag(changed.revision))
        } catch {
            guard error.code == .preconditionFailed, expected == nil, tries > 1 else { throw error }
        }
        return try await change(json, expected: nil, tries: tries - 1, base: base)
    }
}
