import CacheCore
import CacheEngine
import HTTPTypes
import Hummingbird
import NIOCore

/// Content for players, by its three names; one code path.
struct ContentController: Controller {
    let cache: AssetCache
    let gate: Gate

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
        let path = request.uri.path.dropFirst("/o/\(origin)/".count)
        let query = request.uri.query.map { "?" + $0 } ?? ""
        return .mounted(origin: origin, path: path + query, key: nil)
    }

    /// Answers with content, or with a problem whose status may be the upstream's own.
    private func answer(_ reference: AssetReference, _ request: Request, _ context: APIContext) async -> Response {
        do {
            try gate.admitContent(request, access: cache.access(for: reference))
            return try await content(reference, request, context)
        } catch {
            let error = CacheError(foreign: error)
            context.note.update { $0.outcome = error.code.name }
            var response = Problem(
                error, status: error.code.contentStatus, instance: request.uri.path, requestID: context.requestID
            ).response
            response.headers[.cacheStatus] = "Larder; detail=\(error.code.name)"
            return response
        }
    }

    private func content(
        _ reference: AssetReference, _ request: Request, _ context: APIContext
    ) async throws -> Response {
        guard !Self.isLoop(request.headers[values: .cdnLoop]) else {
            throw CacheError(.loop, "The request has been through Larder before (CDN-Loop).")
        }
        let asked = ContentRequest(isHead: request.method == .head, headers: Self.significant(request.headers))
        let options = ReadOptions(timeout: try Self.timeout(request.headers[.larderTimeout]))
        let opening = try await whileClientStays(context.presence) { [cache] in
            try await ContentOpening(cache.read(reference, request: asked, options: options), context)
        }
        return response(opening, request, context)
    }

    private func response(_ opening: ContentOpening, _ request: Request, _ context: APIContext) -> Response {
        let (read, body) = (opening.read, opening.body)
        context.note.update { $0.outcome = read.outcome.requestClass.rawValue }
        var response: Response
        if [412, 416].contains(read.plan.status) {
            body.end(.sent)
            let length = read.plan.headers["Content-Range"].flatMap { Int64($0.drop { !$0.isNumber }) }
            let code: CacheError.Code =
                read.plan.status == 412 ? .preconditionFailed : .rangeNotSatisfiable(length: length)
            let reason =
                read.plan.status == 412 ? "A condition does not hold." : "No byte of the range is in the asset."
            response =
                Problem(CacheError(code, reason), instance: request.uri.path, requestID: context.requestID).response
        } else {
            response = Response(status: .init(code: read.plan.status), body: sent(opening, request))
            response.headers[.contentLength] = nil  // the plan says it where it is known, for HEAD too
        }
        let planned = HTTPFields(read.plan.headers)
        for name in Set(planned.map(\.name)) { response.headers[fields: name] = planned[fields: name] }
        response.headers[.cacheStatus] = CacheStatus.field(
            read.outcome, after: read.plan.headers.combined("Cache-Status"))
        response.headers[.age] = read.age.map { String(max(0, $0.components.seconds)) }
        response.headers[.larderAssetID] = read.assetID.description
        response.headers.append(HTTPField(name: .via, value: "1.1 larder"))
        return response
    }

    /// The body; nothing where the plan has none, or for HEAD.
    private func sent(_ opening: ContentOpening, _ request: Request) -> ResponseBody {
        let (plan, body) = (opening.read.plan, opening.body)
        guard !plan.body.isEmpty, request.method != .head else {
            body.end(.sent)
            return ResponseBody()
        }
        return ResponseBody(contentLength: plan.contentLength.flatMap { Int(exactly: $0) }) { writer in
            try await body.send(first: opening.first, to: &writer)
            try await writer.finish(nil)
        }
    }

    /// The request's fields on which an answer depends; credentials are not among them.
    private static func significant(_ headers: HTTPFields) -> HeaderList {
        let names: [HTTPField.Name] = [
            .range, .ifRange, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .cacheControl,
        ]
        return HeaderList(headers.filter { names.contains($0.name) }.map { .init($0.name.rawName, $0.value) })
    }

    private static func timeout(_ text: String?) throws(CacheError) -> Duration? {
        guard let text else { return nil }
        guard let seconds = Double(text), (0.001...3600).contains(seconds) else {
            throw CacheError(.malformedRequest, "Larder-Timeout wants a number of seconds, at most 3600.")
        }
        return .seconds(seconds)
    }

    /// RFC 8586: whether a `CDN-Loop` names Larder.
    private static func isLoop(_ values: [String]) -> Bool {
        values.flatMap { $0.split(separator: ",") }.contains { member in
            member.split(whereSeparator: { $0 == ";" || $0 == " " || $0 == "\t" }).first?.lowercased() == "larder"
        }
    }
}

extension HTTPFields {
    /// The fields that can be sent; a name or value that HTTP cannot carry is left out.
    init(_ list: HeaderList) {
        self.init(
            list.fields.compactMap { field in
                HTTPField.Name(field.name).map { HTTPField(name: $0, value: field.value) }
            })
    }
}
