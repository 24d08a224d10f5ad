import CacheCore
import CacheEngine
import HTTPTypes
import ReaderAccess

/// Routes for the service itself: health, version, API description.
struct ServiceController: Controller {
    let cache: AssetCache
    let settings: APISettings
    let live: LiveAPISettings
    private let openAPI: StaticDocument

    init(cache: AssetCache, settings: APISettings, live: LiveAPISettings) {
        self.cache = cache
        self.settings = settings
        self.live = live
        openAPI = StaticDocument(settings.openAPI, type: "application/yaml")
    }

    static let routes: [Route<Self>] = [
        Route(.get, "/health/live", .nothing) { _, _, _ in .json(HealthDocument(status: "live")) },
        Route(.get, "/health/ready", .nothing) { controller, _, _ in
            switch controller.cache.readiness {
            case .ready where controller.cache.storeIsGone:
                throw CacheError(.storageCorrupt, "The data directory is missing; restore it and restart the service.")
            case .ready:
                if let fault = controller.cache.fleet?.fault { throw CacheError(.fleetUnavailable, fault) }
                return controller.ready
            case .starting: throw CacheError(.overloaded, "The service is starting.")
            case .leaving:
                throw CacheError(.shuttingDown, "The node leaves its fleet; POST /v1/fleet/join ends this.")
            case .draining: throw CacheError(.shuttingDown, "The service is shutting down.")
            }
        },
        Route(.get, "/health/startup", .nothing) { controller, _, _ in
            guard controller.cache.readiness != .starting else {
                throw CacheError(.overloaded, "The service is starting.")
            }
            return .json(HealthDocument(status: "started"))
        },
        Route(.get, "/version", .scope(.read), limits: .unaffected) { controller, _, context in
            // Without tokens every local client is an administrator.
            let scope = context.reader?.scope ?? .admin
            return .json(
                VersionDocument(name: "larder", version: controller.settings.version, scope: scope.rawValue))
        },
        Route(.get, "/openapi.yaml", .scope(.read), limits: .unaffected) { controller, request, _ in
            controller.openAPI.response(to: request)
        },
    ]

    /// The response of a ready service, with notes about a damaged catalog and missing keys if there are any.
    private var ready: Response {
        let notes = [detail, missingKeySet, missingMasterKey].compactMap(\.self)
        let text = notes.isEmpty ? nil : notes.joined(separator: " ")
        return .json(HealthDocument(status: "ready", detail: .present(text)))
    }

    /// The note about a key set that could not be read; nil if there is none.
    private var missingKeySet: String? {
        live.values.access.directory.missingKeySet.map { url in
            """
            The key set of access.jwt.jwksURL (\(url.prefix { $0 != "?" })) could not be read; JSON Web Tokens are refused \
            until it answers.
            """
        }
    }

    /// The note about encrypted files whose master key is missing; nil if there are none.
    private var missingMasterKey: String? {
        let files = cache.encryption.missingKeyFiles
        return files > 0 ? "The master key of \(files) encrypted files is missing; see /v1/encryption." : nil
    }

    /// The note about a catalog that is damaged now or was damaged at the start; nil if neither applies.
    private var detail: String? {
        if cache.catalogIsDamaged {
            return """
                The catalog is damaged; affected reads bypass the cache. Restart the service to check the catalog.
                """
        }
        guard cache.catalogLoss != nil else { return nil }
        return "The catalog was damaged at the start and was replaced by an empty one; see the log."
    }
}
