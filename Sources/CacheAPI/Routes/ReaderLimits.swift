import CacheCore
import CacheEngine
import ReaderAccess

/// Restricts readers to the origins and path prefixes of their token.
///
/// The check uses the asset's key, which has a normalised path: other spellings of a path are the same key, and dot
/// segments are resolved before.
struct ReaderLimits: Sendable {
    let assets: AssetAdministration

    /// The maximum number of items that are checked for one look-up of a job.
    private static let pageSize = 1000

    /// Applies the rule of a route. Throws `.tokenScope`.
    func check(_ line: RouteLine, _ context: APIContext, for reader: Reader) async throws(CacheError) {
        guard reader.isLimited else { return }
        switch line.limits {
        case .unaffected, .checked: return
        case .asset: try await check(.known(context.assetID()), for: reader)
        case .refused: throw reader.refusal("\(line.method) \(line.pattern), which is about all assets")
        }
    }

    /// Throws `.tokenScope` if the reader must not access the asset. Readers without limits, and nil, may access all.
    ///
    /// A limited reader must name assets by origin and path: an absolute URL has no mount, and a `key` could name an
    /// asset of another origin.
    func check(_ reference: AssetReference, for reader: Reader?) async throws(CacheError) {
        guard let reader, reader.isLimited else { return }
        switch reference {
        case .known(let id): try await check(id, for: reader)
        default: try Self.check(reference, for: reader)
        }
    }

    /// The same for a reference that needs no look-up; `.known` is refused.
    static func check(_ reference: AssetReference, for reader: Reader?) throws(CacheError) {
        guard let reader, reader.isLimited else { return }
        guard case .mounted(let origin, let path, nil) = reference else {
            throw reader.refusal("an asset that is not named by its origin and path alone")
        }
        guard reader.permits(path: try Self.key(origin, path)) else { throw reader.refusal("this path") }
    }

    /// Checks an asset of the catalog. An unknown one is refused like a forbidden one, so that a reader cannot find out
    /// which assets exist.
    private func check(_ id: AssetID, for reader: Reader) async throws(CacheError) {
        do throws(CacheError) {
            let record = try await assets.asset(id).record
            guard reader.permits(key: record.key) else { throw reader.refusal("this asset") }
        } catch  where error.code == .notFound {
            throw reader.refusal("this asset")
        }
    }

    /// Checks all items of a job that the client has ordered, at most a page of them at a time. The files of a playlist
    /// need no check: they follow from an item.
    func check(_ job: String, of jobs: PrefetchJobs, for reader: Reader?) async throws(CacheError) {
        guard let reader, reader.isLimited else { return }
        var cursor: String?
        repeat {
            let page: (items: [JobItemRecord], nextCursor: String?)
            do throws(CacheError) {
                page = try await jobs.items(job, limit: Self.pageSize, cursor: cursor)
            } catch  where error.code == .notFound {
                throw reader.refusal("this job")
            }
            for item in page.items where item.parent == nil { try await check(item.reference, for: reader) }
            cursor = page.nextCursor
        } while cursor != nil
    }

    /// Checks the selection of a purge: at least one of its conditions, which all must hold, must confine it to the
    /// limits.
    func check(_ order: PurgeRequest, for reader: Reader?) async throws(CacheError) {
        guard let reader, reader.isLimited else { return }
        if let keys = order.keys?.values, keys.allSatisfy({ reader.permits(key: $0.text) }) { return }
        if Self.confines(prefix: order.prefix?.text, origin: order.origin?.text, reader) { return }
        if let patterns = order.patterns?.values,
            patterns.allSatisfy({ Self.confines(prefix: $0.prefix, origin: nil, reader) })
        {
            return
        }
        if let ids = order.assetIds?.values {
            for id in ids { try await check(id, for: reader) }
            return
        }
        throw reader.refusal("a purge without keys, assetIds, patterns, prefix or origin inside its limits")
    }

    /// Whether a list or a purge with these conditions contains only assets inside the reader's limits.
    static func confines(prefix: String?, origin: String?, _ reader: Reader) -> Bool {
        if let prefix, reader.permits(allBelow: prefix) { return true }
        guard let origin else { return false }
        return reader.permits(allBelow: "/o/\(origin)/")
    }

    /// The asset key of a path below a mount, without its query.
    private static func key(_ origin: String, _ path: String) throws(CacheError) -> String {
        let path = path.prefix { $0 != "?" }
        let mount = Origin(name: origin, settings: OriginSettings(baseURL: ""))
        return try AssetKey.mounted(
            origin: mount, path: String(path.hasPrefix("/") ? path.dropFirst() : path), query: nil, digest: { $0 }
        ).text
    }
}

extension Reader {
    /// Whether the content at the path, which begins with `/o/`, is inside the limits.
    func permits(path: String) -> Bool {
        let parts = path.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 4, parts[0].isEmpty, parts[1] == "o" else { return false }
        return admits(origin: String(parts[2]), path: path)
    }

    /// Whether all keys with this prefix are inside the limits. The prefix must contain the whole name of the origin.
    func permits(allBelow prefix: String) -> Bool { !prefix.contains("?") && permits(path: prefix) }

    /// The error for an access outside the limits of the token.
    func refusal(_ object: String) -> CacheError {
        CacheError(.tokenScope, "The token \(id) is limited to some origins or paths and does not permit \(object).")
    }

    /// Whether the asset with the key is inside the limits. A key that the client has chosen has no path; it is outside.
    func permits(key: String) -> Bool {
        // Behind the path there can be a digest of the query, and a mark of the variant.
        permits(path: String(key.prefix { $0 != "?" }))
    }
}
