import CacheCore
import HTTPTypes
import ReaderAccess

/// Routes for the configuration of the service.
struct ConfigurationController: Controller {
    let source: any ConfigurationSource

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/configuration", .scope(.admin)) { controller, _, _ in
            .json(ConfigurationDocument(controller.source.report))
        },
        Route(.post, "/v1/configuration/reload", .scope(.admin)) { controller, _, _ in
            .json(ReloadDocument(try await controller.source.reload()))
        },
    ]
}
