import CacheCore
import CacheEngine
import HTTPTypes
import Hummingbird
import NIOCore

/// Content for players, by its three names; one code path.
struct ContentController: Controller {
    let cache: AssetCache
    let gate: Gate
    let places: Places

    static let routes: [Route<Self>] = [HTTPRequest.Method.get, .head].flatMap { method in
        [
            Route(method, "/o/{origin}/{path}", .content) { controller, request, context in
                let reference = try Self.mounted(request, context)
                return await controller.answer(reference, request, context)
            },
            Route(method, "/v1/content", .content, readsQuery: true) { controller, request, context in
                let reference = try controller.reference(request) { () throws(CacheError) in
                    let query = try request.query(accepting: ["url", "key"])
                    return .url(try query.required("url"), key: query.string("key"))
                }
                return await controller.answer(reference, request, context)
            },
            Route(method, "/v1/assets/{assetId}/content", .content, readsQuery: true) { controller, request, context in
                let reference = try controller.reference(request) { () throws(CacheError) in
                    _ = try request.query(accepting: [])
                    return .known(try context.assetID())
                }
                return await controller.answer(reference, request, context)
            },
        ]
    }

    /// What the request asks for; who may not read at all is not told what is wrong with it.
    private func reference(
        _ request: Request, _ read: () throws(CacheError) -> AssetReference
    ) throws(CacheError) -> AssetReference {
        do {
            return try read()
        } catch {
            try gate.admitContent(request, access: .token)
            throw error
        }
    }

    /// The path below the mount as it came, percent-encoding, empty segments and query included.
    private static func mounted(_ request: Request, _ context: APIContext) throws(CacheError) -> AssetReference {
        let origin = try context.parameter("origin")
        let path = request.uri.path.dropFirst("/o/\(origin)".count)
        let query = request.uri.query.map { "?" + $0 } ?? ""
        return .mounted(origin: origin, path: path + query, key: nil)
    }

    /// Answers with content, or with a problem whose status may be the upstream's own.
    private func answer(_ reference: AssetReference, _ request: Request, _ context: APIContext) async -> Response {
        let answer = ContentAnswer(request: request, context: context)
        do {
            try gate.admitContent(request, access: cache.access(for: reference))
            guard let place = places.take() else {
                throw CacheError(.overloaded, "\(places.limit) reads are in progress, and there may be no more.")
            }
            context.note.hold(place)
            return answer.content(try await open(reference, request, context))
        } catch let failure as ReadFailure {
            return answer.refusal(failure)
        } catch {
            return answer.refusal(ReadFailure(CacheError(foreign: error)))
        }
    }

    private func open(
        _ reference: AssetReference, _ request: Request, _ context: APIContext
    ) async throws -> ContentOpening {
        guard !Self.isLoop(request.headers[values: .cdnLoop], to: cache.loopName) else {
            throw CacheError(.loop, "The request has been here before (CDN-Loop).")
        }
        let options = ReadOptions(timeout: try Self.timeout(request.headers[.larderTimeout]))
        let asked = ContentRequest(request)
        return try await whileClientStays(context.presence) { [cache] in
            try await ContentOpening(cache.read(reference, request: asked, options: options), context)
        }
    }

    private static func timeout(_ text: String?) throws(CacheError) -> Duration? {
        guard let text else { return nil }
        guard let seconds = Double(text), (0.001...3600).contains(seconds) else {
            throw CacheError(.malformedRequest, "Larder-Timeout wants a number of seconds, at most 3600.")
        }
        return .seconds(seconds)
    }

    /// RFC 8586: whether a `CDN-Loop` names the service of that name.
    static func isLoop(_ values: [String], to name: String) -> Bool {
        values.flatMap { FieldText.members(of: $0) }.contains { member in
            member.split(whereSeparator: { $0 == ";" || $0 == " " || $0 == "\t" }).first?.lowercased() == name
        }
    }
}
