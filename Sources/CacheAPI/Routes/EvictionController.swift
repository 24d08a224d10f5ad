import CacheEngine
import Hummingbird

/// Making room, and taking assets out.
struct EvictionController: Controller {
    let cache: AssetCache
    let limits: APISettings.Limits

    static let routes: [Route<Self>] = [
        Route(.post, "/v1/evictions", .scope(.admin)) { controller, request, _ in
            let order = try EvictionOrder(await request.json(upTo: controller.limits.bodyBytes).json)
            return .json(try await controller.cache.evict(order.goal, isDryRun: order.isDryRun).json)
        },
        Route(.post, "/v1/purges", .scope(.admin)) { controller, request, _ in
            let order = try PurgeOrder(await request.json(upTo: controller.limits.bodyBytes).json)
            let report = try await controller.cache.purge(
                order.selection, isSoft: order.isSoft, isDryRun: order.isDryRun)
            return .json(report.json)
        },
    ]
}
