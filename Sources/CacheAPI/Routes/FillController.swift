import CacheCore
import CacheEngine
import HTTPTypes
import ReaderAccess

/// Routes for upstream transfers: fills, explanations of a read, and workers.
struct FillController: Controller {
    let fills: FillRegistry
    let reader: ContentReader
    let media: MediaInspector
    let statistics: CacheStatistics
    let readers: ReaderLimits

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/fills", .scope(.read), readsQuery: true, limits: .checked) { controller, request, context in
            try await controller.list(request, context)
        },
        Route(.get, "/v1/fills/{fillId}", .scope(.read), limits: .checked) { .json(FillDocument(try $0.fill($2))) },
        Route(.delete, "/v1/fills/{fillId}", .scope(.write), limits: .checked) { controller, _, context in
            if context.reader?.isLimited ?? false { _ = try controller.fill(context) }
            try controller.fills.cancel(context.parameter("fillId"))
            return Response(status: .noContent)
        },
        Route(.get, "/v1/explain", .scope(.read), readsQuery: true, limits: .checked) { controller, request, context in
            try await controller.explain(request, context)
        },
        Route(.get, "/v1/workers", .scope(.read)) { controller, _, _ in
            .json(WorkersDocument(controller.statistics.transferLoad))
        },
    ]

    /// Lists the current fills page by page.
    private func list(_ request: Request, _ context: APIContext) async throws -> Response {
        let query = try request.query(accepting: ["origin", "prefix", "assetId", "state", "limit", "cursor"])
        let list = FillQuery(
            origin: query.string("origin"), prefix: query.string("prefix"), assetID: try query.assetID("assetId"),
            stage: try query.choice("state"), limit: try query.limit(), cursor: query.string("cursor"))
        if let reader = context.reader, reader.isLimited {
            if let id = list.assetID {
                try await readers.check(.known(id), for: reader)
            } else if !ReaderLimits.confines(prefix: list.prefix, origin: list.origin, reader) {
                throw reader.refusal("a list of fills without assetId, prefix or origin inside its limits")
            }
        }
        let page = try fills.page(list)
        return .page(page.items.map(FillDocument.init), next: page.nextCursor)
    }

    /// The fill in the path. Throws `.notFound`, and `.tokenScope` if it is outside the limits of the reader; an unknown one
    /// is refused like a forbidden one.
    private func fill(_ context: APIContext) throws(CacheError) -> FillStatus {
        let id = try context.parameter("fillId")
        guard let reader = context.reader, reader.isLimited else { return try fills.fill(id) }
        guard let fill = try? fills.fill(id), reader.limits.permits(key: fill.key) else {
            throw reader.refusal("this fill")
        }
        return fill
    }

    /// The values of the query parameter `method`.
    private enum Method: String, CaseIterable { case get = "GET", head = "HEAD" }

    /// Explains how a read would be answered. The fields of this request count as those of the read; its range, or its
    /// time, and its method are query parameters.
    private func explain(_ request: Request, _ context: APIContext) async throws -> Response {
        let keys = AssetReference.keys + ["assetId"]
        let query = try request.query(accepting: keys + ["range", "method", "startSeconds", "seconds", "renditions"])
        let members = keys.compactMap { key in query.string(key).map { JSON.Member(key, .string($0)) } }
        // The parameters have the names of an item of a job.
        let reference = try JSON.object(members).decode(CreateJobRequest.Item.self).reference
        try await readers.check(reference, for: context.reader)
        var fields = request.headers
        fields[.range] = query.string("range")
        let isHead = try query.choice("method", Method.self) == .head
        let read = ContentRequest(isHead: isHead, fields: fields)
        guard let play = try play(of: query) else {
            return .json(ExplanationDocument(try await self.reader.explain(reference, request: read)))
        }
        let explanation =
            switch try await media.needs(of: reference, for: play, owner: context.reader?.owner) {
            case .ranges(let ranges): try await self.reader.explain(reference, request: read, ranges: ranges)
            case .files(let files): try await self.reader.explain(reference, request: read, files: files)
            }
        return .json(ExplanationDocument(explanation))
    }

    /// The time span of the read; nil: the read is one of bytes.
    private func play(of query: QueryFields) throws(CacheError) -> PlayRequest? {
        let limit = PlayRequest.maxSeconds
        let start = try query.seconds("startSeconds", in: -limit...limit)?.inSeconds
        let length = try query.seconds("seconds", in: 0.001...limit)?.inSeconds
        let renditions = query.string("renditions")
        guard start != nil || length != nil || renditions != nil else { return nil }
        guard let length else { throw .invalid("seconds", "A time span needs its length in seconds.") }
        guard query.string("range") == nil else { throw .invalid("range", "A read has either a range or a time span.") }
        guard let choice = RenditionChoice(renditions ?? "lowest") else {
            throw .invalid(
                "renditions",
                "One of lowest, first, all, bits per second, or language=de,maxHeight=720 is expected here.")
        }
        let from = start ?? 0
        return PlayRequest(time: from..<from + length, hasStart: start != nil, renditions: choice)
    }
}
