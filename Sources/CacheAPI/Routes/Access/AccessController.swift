import HTTPTypes
import ReaderAccess

/// The route for the permissions of the caller.
struct AccessController: Controller {
    static let routes: [Route<Self>] = [
        Route(.get, "/v1/access", .scope(.read), limits: .unaffected) { _, _, context in
            .json(AccessDocument(context.reader))
        }
    ]
}
