import CacheEngine
import Hummingbird

/// Comparing what is on disk with its checksums.
struct ScrubController: Controller {
    let cache: AssetCache
    let limits: APISettings.Limits

    static let routes: [Route<Self>] = [
        Route(.post, "/v1/scrubs", .scope(.admin)) { controller, request, _ in
            let order = try ScrubOrder(await request.json(upTo: controller.limits.bodyBytes).json)
            let report = try controller.cache.scrub(order)
            return .json(
                report.json, status: .accepted, headers: [.location: "/v1/scrubs/\(report.id)", .retryAfter: "1"])
        },
        Route(.get, "/v1/scrubs/{scrubId}", .scope(.read)) { .json(try $0.cache.scrub($2.parameter("scrubId")).json) },
    ]
}
