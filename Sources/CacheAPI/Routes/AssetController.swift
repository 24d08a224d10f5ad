import CacheCore
import CacheEngine
import HTTPTypes
import ReaderAccess

/// Routes for cached assets: list, properties, changes, deletion, extents.
struct AssetController: Controller {
    let cache: AssetCache
    let live: LiveAPISettings
    let clock: any Clock<Duration>

    private var assets: AssetAdministration { cache.assets }
    private var media: MediaInspector { cache.media }

    private var limits: APISettings.Limits { live.values.limits }

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/assets", .scope(.read), readsQuery: true, limits: .checked) { controller, request, context in
            try await controller.list(request, context)
        },
        Route(.get, "/v1/assets/usage", .scope(.read), readsQuery: true, limits: .checked) {
            try await $0.usage($1, $2)
        },
        Route(.get, "/v1/assets/{assetId}", .scope(.read), limits: .asset) {
            .json(AssetDocument(try await $0.assets.asset($2.assetID())))
        },
        Route(.patch, "/v1/assets/{assetId}", .scope(.write), limits: .asset) { try await $0.patch($1, $2) },
        Route(.delete, "/v1/assets/{assetId}", .scope(.write), readsQuery: true, limits: .asset) {
            try await $0.delete($1, $2)
        },
        Route(.get, "/v1/assets/{assetId}/extents", .scope(.read), readsQuery: true, limits: .asset) {
            try await $0.extents($1, $2)
        },
        Route(.delete, "/v1/assets/{assetId}/extents", .scope(.write), readsQuery: true, limits: .asset) {
            try await $0.dropExtents($1, $2)
        },
        Route(.get, "/v1/assets/{assetId}/map", .scope(.read), readsQuery: true, limits: .asset) {
            try await $0.map($1, $2)
        },
        Route(.get, "/v1/assets/{assetId}/integrity", .scope(.read), readsQuery: true, limits: .asset) {
            try await $0.integrity($1, $2)
        },
        Route(.get, "/v1/assets/{assetId}/media", .scope(.read), limits: .asset) {
            .json(MediaDocument(try await $0.media.media(of: $2.assetID(), for: $2.reader?.owner)))
        },
        Route(.post, "/v1/assets/{assetId}/cancel", .scope(.write), limits: .asset) { controller, _, context in
            .json(CancelledFillsDocument(cancelled: try await controller.assets.cancelFills(of: context.assetID())))
        },
    ]

    /// The query parameters of the list.
    private static let listKeys = [
        "key", "url", "origin", "prefix", "contains", "state", "pinned", "tag", "sort", "order", "limit", "cursor",
        "total",
    ]

    private enum Order: String, CaseIterable { case asc, desc }

    /// Lists assets page by page. The default order is the last access, newest first.
    private func list(_ request: Request, _ context: APIContext) async throws -> Response {
        let query = try request.query(accepting: Self.listKeys)
        let list = AssetQuery(
            key: query.string("key"), urls: query.string("url").map { [$0] }, origin: query.string("origin"),
            prefix: query.string("prefix"), part: query.string("contains").map(NamePart.init),
            state: try query.choice("state"), isPinned: try query.bool("pinned"), tag: query.string("tag"),
            sort: try query.choice("sort") ?? .lastAccess, isDescending: try query.choice("order", Order.self) != .asc,
            limit: try query.limit(), cursor: query.string("cursor"))
        if let reader = context.reader, reader.isLimited,
            !ReaderLimits.confines(prefix: list.prefix, origin: list.origin, reader)
        {
            throw reader.refusal("a list of assets without prefix or origin inside its limits")
        }
        let page = try await assets.page(list)
        let total = try query.wantsTotal() ? try await assets.count(list) : nil
        return .page(page.items.map(AssetDocument.init), next: page.nextCursor, total: total)
    }

    /// The usage by groups. Limited readers see the directories inside their limits.
    private func usage(_ request: Request, _ context: APIContext) async throws -> Response {
        let fields = try request.query(accepting: ["by", "prefix", "depth", "limit"])
        let query = UsageQuery(
            group: try fields.choice("by") ?? .origin, prefix: fields.string("prefix"),
            depth: Int(try fields.integer("depth", in: 1...Int64(UsageName.deepest + 1)) ?? 1),
            limit: try fields.limit())
        for (name, isPresent) in [("prefix", query.prefix != nil), ("depth", fields.string("depth") != nil)]
        where isPresent && query.group != .path {
            throw CacheError.invalid(name, "This parameter belongs to by=path.")
        }
        if let reader = context.reader, reader.isLimited,
            !ReaderLimits.confines(prefix: query.prefix, origin: nil, reader)
        {
            throw reader.refusal("the usage without by=path and a prefix inside its limits")
        }
        return .json(UsageDocument(try await assets.usage(query), of: query))
    }

    /// Applies a merge patch (RFC 7396) to an asset's properties.
    private func patch(_ request: Request, _ context: APIContext) async throws -> Response {
        let id = try context.assetID()
        let patch = try await request.json(upTo: limits.bodyBytes, types: Request.mergePatchTypes) { json, _ in
            try AssetPatch(json)
        }
        return .json(AssetDocument(try await assets.patch(id, patch)))
    }

    /// Deletes an asset. With `soft` it becomes stale instead, and is revalidated at the next read. In a fleet, the status
    /// is 202 unless all nodes have done so within the time that the request grants.
    private func delete(_ request: Request, _ context: APIContext) async throws -> Response {
        let isSoft = try request.query(accepting: ["soft"]).bool("soft") ?? false
        let number = try await cache.deleteAsset(context.assetID(), isSoft: isSoft)
        let purge = try await FleetPurgeDocument.waiting(for: number, of: cache, request, clock: clock)
        guard let purge, !purge.complete else { return Response(status: .noContent) }
        return .json(purge, status: .accepted, headers: [.location: "/v1/fleet/purges/\(purge.number)"])
    }

    /// Lists the cached ranges of an asset.
    private func extents(_ request: Request, _ context: APIContext) async throws -> Response {
        _ = try request.query(accepting: [])
        let extents = try await assets.extents(of: context.assetID())
        return .json(ListDocument(items: extents.map(RangeDocument.init)))
    }

    /// Lists the checksums of the stored blocks of an asset page by page.
    private func integrity(_ request: Request, _ context: APIContext) async throws -> Response {
        let query = try request.query(accepting: ["limit", "cursor"])
        let checksums = try await assets.checksums(
            of: context.assetID(), limit: try query.limit(), cursor: query.string("cursor"))
        return .json(IntegrityDocument(checksums))
    }

    /// Deletes the cached bytes of one range.
    private func dropExtents(_ request: Request, _ context: APIContext) async throws -> Response {
        let query = try request.query(accepting: ["offset", "length"])
        let offset = try query.integer("offset", in: 0...Int64.max)
        let length = try query.integer("length", in: 1...Int64.max)
        guard let length else { throw CacheError(.invalidField("length"), "The length of the range is missing.") }
        let dropped = try await assets.dropExtents(
            of: context.assetID(), in: ByteRange(offset: offset ?? 0, length: length))
        return .json(DroppedBytesDocument(droppedBytes: dropped))
    }

    /// The values of the query parameter `by`.
    private enum MapAxis: String, CaseIterable { case bytes, time }

    /// The share of cached bytes and the use of equal parts of an asset, or of its time.
    private func map(_ request: Request, _ context: APIContext) async throws -> Response {
        let query = try request.query(accepting: ["buckets", "by"])
        let buckets = Int(try query.integer("buckets", in: 1...10_000) ?? 200)
        let id = try context.assetID()
        let map =
            switch try query.choice("by", MapAxis.self) {
            case .time: try await media.map(of: id, buckets: buckets, for: context.reader?.owner)
            case .bytes, nil: try await assets.map(of: id, buckets: buckets)
            }
        return .json(AssetMapDocument(buckets: map.map(AssetMapDocument.Bucket.init)))
    }
}
