import CacheCore
import Hummingbird
import ReaderAccess

/// Route for signed content URLs.
struct SignatureController: Controller {
    let live: LiveAPISettings
    let wallClock: any WallClock

    static let routes: [Route<Self>] = [
        Route(.post, "/v1/signatures", .scope(.admin)) { controller, request, _ in
            let limit = controller.live.values.limits.bodyBytes
            return try controller.sign(await request.json(upTo: limit).json)
        }
    ]

    /// Signs a URL. Throws `.conflict` without keys, and `.invalidField`.
    private func sign(_ json: JSON) throws(CacheError) -> Response {
        guard let signatures = live.values.access.signatures else {
            throw CacheError(.conflict, "Signed URLs are not enabled; set access.signing.keysDirectory.")
        }
        let url = try signatures.keys.sign(SignatureRequest(json, at: wallClock.now()))
        return .json(
            ["url": .string(url.target), "expiresAt": .instant(url.expiresAt), "kid": .string(url.keyID)],
            status: .created)
    }
}
