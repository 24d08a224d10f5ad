import CacheCore
import CacheEngine
import HTTPTypes
import ReaderAccess

/// Route for signed content URLs.
struct SignatureController: Controller {
    let live: LiveAPISettings
    let content: ContentReader
    let wallClock: any WallClock

    static let routes: [Route<Self>] = [
        Route(.post, "/v1/signatures", .scope(.sign), limits: .checked) { controller, request, context in
            let limit = controller.live.values.limits.bodyBytes
            let now = controller.wallClock.now()
            let order = try await request.json(upTo: limit) { json, _ in try SignatureRequest(json, at: now) }
            return try controller.sign(order, at: now, for: context.reader)
        }
    ]

    /// Signs a URL. Throws `.conflict` without keys, `.invalidField`, and `.tokenScope` outside the limits of the
    /// reader.
    private func sign(
        _ order: SignatureRequest, at now: Timestamp, for reader: Reader?
    ) throws(CacheError) -> Response {
        var request = order
        if case .mounted(let origin, _)? = ContentTarget(request.path),
            !content.access(for: .mounted(origin: origin, path: "", key: nil)).coversCMCD
        {
            request.path = CMCDParameter.removed(fromTarget: request.path)
        }
        try reader?.check(request, at: now)
        guard let signatures = live.values.access.signatures else {
            throw CacheError(.conflict, "Signed URLs are not enabled; set access.signing.keysDirectory.")
        }
        let url = try signatures.keys.sign(request)
        return .json(
            SignedURLDocument(url: url.target, expiresAt: url.expiresAt, kid: url.keyID), status: .created)
    }
}

extension Reader {
    /// Throws `.tokenScope` unless the signed content lies inside the limits of the reader, and the signature ends soon
    /// enough.
    fileprivate func check(_ request: SignatureRequest, at now: Timestamp) throws(CacheError) {
        if let maxSignatureSeconds, request.expiresAt > now + .seconds(maxSignatureSeconds) {
            throw CacheError(
                .tokenScope, "The token \(id) permits signatures for at most \(maxSignatureSeconds) seconds.")
        }
        guard !isLimited || limits.permits(path: request.coveredPath) else {
            throw refusal(
                request.scope == .prefix ? "a signature for this whole directory" : "a signature for this path")
        }
    }
}
