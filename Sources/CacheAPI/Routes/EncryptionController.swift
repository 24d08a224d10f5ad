import CacheCore
import CacheEngine
import HTTPTypes
import ReaderAccess

/// Routes for the master keys of encrypted origins.
struct EncryptionController: Controller {
    let encryption: EncryptionAdministration

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/encryption", .scope(.admin)) { controller, _, _ in
            .json(EncryptionDocument(try await controller.encryption.report()))
        },
        Route(.post, "/v1/encryption/rotate", .scope(.admin)) { controller, _, _ in
            .json(
                EncryptionDocument(try await controller.encryption.rotate()), status: .accepted,
                headers: [.location: "/v1/encryption", .retryAfter: "1"])
        },
    ]
}
