import CacheCore
import CacheEngine
import HTTPTypes
import Hummingbird
import NIOCore
import ReaderAccess

/// Routes for content: by mounted path, by URL or key, and by asset ID. All three have one implementation.
struct ContentController: Controller {
    let reader: ContentReader
    let gate: Authorizer
    let readers: ReaderLimits
    /// Limits concurrent reads.
    let places: AdmissionLimiter

    static let routes: [Route<Self>] = [HTTPRequest.Method.get, .head].flatMap { method in
        [
            Route(method, "/o/{origin}/{path}", .content) { controller, request, context in
                let reference = try Self.mounted(request, context)
                return await controller.answer(reference, request, context)
            },
            Route(method, "/v1/content", .content, readsQuery: true) { controller, request, context in
                let reference = try controller.reference(request, context) { () throws(CacheError) in
                    let query = try request.query(accepting: ["url", "key"])
                    return .url(try query.required("url"), key: query.string("key"))
                }
                return await controller.answer(reference, request, context)
            },
            Route(method, "/v1/assets/{assetId}/content", .content, readsQuery: true) { controller, request, context in
                let reference = try controller.reference(request, context) { () throws(CacheError) in
                    _ = try request.query(accepting: [])
                    return .known(try context.assetID())
                }
                return await controller.answer(reference, request, context)
            },
        ]
    }

    /// Returns the result of `read`. If that throws, the client is authorized first: without a token it gets 401
    /// instead of the error, which would reveal details.
    private func reference(
        _ request: Request, _ context: APIContext, _ read: () throws(CacheError) -> AssetReference
    ) throws(CacheError) -> AssetReference {
        do {
            return try read()
        } catch {
            _ = try gate.admitContent(
                context.credentials, request.head.path ?? "", host: request.head.authority, access: .token,
                reference: nil)
            throw error
        }
    }

    /// The asset of a mounted path. The path below the origin stays unchanged, with percent-encoding, empty segments
    /// and query.
    private static func mounted(_ request: Request, _ context: APIContext) throws(CacheError) -> AssetReference {
        let origin = try context.parameter("origin")
        let path = request.uri.path.dropFirst("/o/\(origin)".count)
        let query = request.uri.query.map { "?" + $0 } ?? ""
        return .mounted(origin: origin, path: path + query, key: nil)
    }

    /// Authorizes the request, claims a read permit and returns the content, or a problem, which may have the
    /// upstream's status. The permit is kept until the response has ended.
    private func answer(_ reference: AssetReference, _ request: Request, _ context: APIContext) async -> Response {
        let answer = ContentResponseBuilder(request: request, context: context)
        do {
            let admission = try gate.admitContent(
                context.credentials, request.head.path ?? "", host: request.head.authority,
                access: reader.access(for: reference), reference: reference)
            context.note.update { $0.reader = admission.reader }
            if case .known = reference { try await readers.check(reference, for: admission.reader) }
            guard let place = places.take() else {
                throw CacheError(.overloaded, "Too many concurrent reads; raise limits.maxConcurrentReads or retry.")
            }
            context.note.hold(place)
            return Self.renewing(admission, answer.content(try await open(reference, request, context)))
        } catch let failure as ReadFailure {
            return answer.refusal(failure)
        } catch {
            return answer.refusal(ReadFailure(CacheError(foreign: error)))
        }
    }

    /// The response with the renewed cookie of a signature (RFC 9246 §3.3). No cache must keep such a field.
    private static func renewing(_ admission: Admission, _ response: Response) -> Response {
        guard let renewal = admission.renewal else { return response }
        var response = response
        response.headers[.setCookie] =
            "\(PresentedSignature.packageName)=\(renewal.token); Path=\(renewal.path); "
            + "Expires=\(HTTPDate.format(renewal.expiresAt)); HttpOnly"
        response.headers[.cacheControl] = "private, no-store"
        return response
    }

    /// Starts the read and waits for its first bytes, or until the client disconnects. Throws `.loop` if the request
    /// has passed this service before.
    private func open(
        _ reference: AssetReference, _ request: Request, _ context: APIContext
    ) async throws -> StartedRead {
        guard !Self.isLoop(request.headers[values: .cdnLoop], to: reader.loopName) else {
            throw CacheError(.loop, "CDN-Loop names this service; check the origin for a loop.")
        }
        let options = ReadOptions(timeout: try Self.timeout(request.headers[.larderTimeout]))
        // A token of this service is no credential of the upstream.
        let hasToken = gate.access.isOwn(context.credentials, at: gate.wallClock.now())
        let asked = ContentRequest(request, forwardsAuthorization: !hasToken)
        return try await whileClientStays(context.presence) { [reader] in
            try await StartedRead(reader.read(reference, request: asked, options: options), context)
        }
    }

    /// The time limit of `Larder-Timeout`; nil without the field.
    private static func timeout(_ text: String?) throws(CacheError) -> Duration? {
        guard let text else { return nil }
        guard let seconds = Double(text), (0.001...3600).contains(seconds) else {
            throw CacheError(.malformedRequest, "Larder-Timeout must be a number of seconds from 0.001 to 3600.")
        }
        return .seconds(seconds)
    }

    /// Whether `CDN-Loop` (RFC 8586) contains the service `name`, which is lower case.
    static func isLoop(_ values: [String], to name: String) -> Bool {
        values.flatMap { FieldText.members(of: $0) }.contains { member in
            member.split(whereSeparator: { $0 == ";" || $0 == " " || $0 == "\t" }).first?.lowercased() == name
        }
    }
}
