import CacheCore
import CacheEngine
import ReaderAccess

/// Restricts readers to the origins and path prefixes of their token; see ``ContentLimits``.
struct ReaderLimits: Sendable {
    let assets: AssetAdministration

    /// The number of items of a job that are checked at first, and for each further look-up: most jobs outside the
    /// limits are recognised by their first items.
    private static let pageSizes = (first: 16, next: 1000)
    /// The largest job of another token that is searched for items outside the limits: each request reads all its items.
    private static let mostItems = 1000

    /// Applies the rule of a route. Throws `.tokenScope`.
    func check(_ line: RouteLine, _ context: APIContext, for reader: Reader) async throws(CacheError) {
        guard line.isPermitted(to: reader) else {
            throw reader.refusal("\(line.method) \(line.pattern), which is about all assets")
        }
        if line.limits == .asset { try await check(.known(context.assetID()), for: reader) }
    }

    /// Throws `.tokenScope` if the reader must not access the asset, as ``TokenOwner/check(_:key:)``. Readers without
    /// limits, and nil, may access all.
    func check(_ reference: AssetReference, for reader: Reader?) async throws(CacheError) {
        guard let reader, reader.isLimited else { return }
        try await reader.owner.check(reference) { id async throws(CacheError) in try await assets.key(of: id) }
    }

    /// The same for a reference that needs no look-up; `.known` is refused.
    static func check(_ reference: AssetReference, for reader: Reader?) throws(CacheError) {
        try reader?.owner.check(reference)
    }

    /// Throws `.tokenScope` unless the job belongs to the reader with its present limits, or all its items are inside the limits. An unknown job
    /// is refused like a forbidden one.
    func check(_ job: String, of jobs: PrefetchJobs, for reader: Reader?) async throws(CacheError) {
        guard let reader, reader.isLimited else { return }
        do throws(CacheError) {
            if try await permits(jobs.job(job), of: jobs, for: reader) { return }
        } catch  where error.code == .notFound {}
        throw reader.refusal("this job")
    }

    /// Whether the job belongs to the reader, or all its items are inside the limits, the files of its playlists
    /// included. A large job is taken for one outside.
    func permits(_ job: JobSnapshot, of jobs: PrefetchJobs, for reader: Reader) async throws(CacheError) -> Bool {
        guard reader.isLimited, job.record.owner != reader.owner else { return true }
        guard job.tally.itemsTotal <= Self.mostItems else { return false }
        var (cursor, limit): (String?, Int) = (nil, Self.pageSizes.first)
        repeat {
            let page = try await jobs.items(job.record.id, limit: limit, cursor: cursor)
            for item in page.items {
                do throws(CacheError) {
                    try await check(item.reference, for: reader)
                } catch {
                    guard error.code == .tokenScope else { throw error }
                    return false
                }
            }
            (cursor, limit) = (page.nextCursor, Self.pageSizes.next)
        } while cursor != nil
        return true
    }

    /// Checks the selection of a purge: at least one of its conditions, which all must hold, must confine it to the
    /// limits.
    func check(_ order: PurgeRequest, for reader: Reader?) async throws(CacheError) {
        guard let reader, reader.isLimited else { return }
        if let keys = order.keys, keys.allSatisfy({ reader.limits.permits(key: $0) }) { return }
        if Self.confines(prefix: order.prefix, origin: order.origin, reader) { return }
        if let patterns = order.patterns,
            patterns.allSatisfy({ Self.confines(prefix: $0.prefix, origin: nil, reader) })
        {
            return
        }
        if let ids = order.assetIDs {
            for id in ids { try await check(.known(id), for: reader) }
            return
        }
        throw reader.refusal("a purge without keys, assetIds, patterns, prefix or origin inside its limits")
    }

    /// Whether a list or a purge with these conditions contains only assets inside the reader's limits.
    static func confines(prefix: String?, origin: String?, _ reader: Reader) -> Bool {
        if let prefix, reader.limits.permits(allBelow: prefix) { return true }
        guard let origin else { return false }
        return reader.limits.permits(allBelow: "/o/\(origin)/")
    }
}

extension Reader {
    /// The error for an access outside the limits of the token.
    func refusal(_ object: String) -> CacheError { owner.refusal(object) }
}
