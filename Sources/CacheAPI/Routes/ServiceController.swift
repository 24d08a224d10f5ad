import CacheCore
import CacheEngine
import Hummingbird

/// The service itself: whether it is well, and what it is.
struct ServiceController: Controller {
    let cache: AssetCache
    let settings: APISettings

    static let routes: [Route<Self>] = [
        Route(.get, "/health/live", .nothing) { _, _, _ in .json(["status": "live"]) },
        Route(.get, "/health/ready", .nothing) { controller, _, _ in
            switch controller.cache.readiness {
            case .ready where controller.cache.storeIsGone:
                throw CacheError(.storageCorrupt, "The data directory is gone; the service must be started again.")
            case .ready: controller.ready
            case .starting: throw CacheError(.overloaded, "The service is starting.")
            case .draining: throw CacheError(.shuttingDown, "The service is shutting down.")
            }
        },
        Route(.get, "/health/startup", .nothing) { controller, _, _ in
            guard controller.cache.readiness != .starting else {
                throw CacheError(.overloaded, "The service is starting.")
            }
            return .json(["status": "started"])
        },
        Route(.get, "/version", .scope(.read)) { controller, _, _ in
            .json(["name": "larder", "version": .string(controller.settings.version)])
        },
        Route(.get, "/openapi.yaml", .scope(.read)) { controller, _, _ in
            .text(controller.settings.openAPI, type: "application/yaml")
        },
    ]

    /// Ready; and what is wrong with the catalog, where something is.
    private var ready: Response {
        guard let detail else { return .json(["status": "ready"]) }
        return .json(["status": "ready", "detail": .string(detail)])
    }

    private var detail: String? {
        if cache.catalogIsDamaged {
            return """
                The catalog was found damaged: what it cannot tell or take is read through, until the next start looks at it.
                """
        }
        guard cache.catalogLoss != nil else { return nil }
        return "The catalog was damaged at the start and is put aside; the store began empty. The log names it."
    }
}
