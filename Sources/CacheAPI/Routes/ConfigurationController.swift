import CacheCore
import Hummingbird
import ReaderAccess

/// Routes for the configuration of the service.
struct ConfigurationController: Controller {
    let source: any ConfigurationSource

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/configuration", .scope(.admin)) { controller, _, _ in .json(controller.source.report.json) },
        Route(.post, "/v1/configuration/reload", .scope(.admin)) { controller, _, _ in
            .json(try await controller.source.reload().json)
        },
    ]
}
