import CacheEngine
import HTTPTypes
import ReaderAccess

/// Routes for the webhooks of the configuration.
struct WebhookController: Controller {
    let webhooks: Webhooks

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/webhooks", .scope(.admin)) { controller, _, _ in
            .json(WebhookListDocument(try await controller.webhooks.report()))
        }
    ]
}
