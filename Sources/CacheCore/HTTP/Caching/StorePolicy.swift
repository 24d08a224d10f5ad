/// Which responses a shared cache may keep (RFC 9111 §3).
package enum StorePolicy {
    /// Refusals that say something of the asset, and may be repeated unasked where they have a lifetime: never a 5xx, and
    /// none that speaks of the request's credentials, its condition or its connection.
    package static let keptRefusals: Set<Int> = [403, 404, 405, 410, 414, 451]

    /// Whether a 200 or 206 may be kept.
    ///
    /// `must-understand` sets `no-store` aside, since these statuses are understood (§5.2.2.3). A `Vary` of named fields
    /// is no hindrance: each variant is an asset of its own. Nor is `Authorization` (§3.5): an origin's credentials are
    /// the cache's own, and a reader's are never sent on; nor `Set-Cookie` (§7.3), which is never kept.
    package static func allows(_ headers: HeaderList, _ control: CacheControl) -> Bool {
        let forbids = control.noStore && !control.mustUnderstand
        return !forbids && !control.isPrivate && !Variation.isOnEverything(headers)
    }

    /// Until when, and from which age on, a refusal may be repeated; nil: not at all. Only a lifetime that the response
    /// states itself counts, and no more of it than `limit`; one that varies is not kept.
    package static func refusal(_ head: UpstreamHead, now: Timestamp, atMost limit: Duration?) -> Freshness? {
        guard let limit, keptRefusals.contains(head.status), head.headers["Vary"] == nil else { return nil }
        let freshness = Freshness.of(head, now: now, settings: .explicit)
        guard freshness.isStorable, let freshUntil = freshness.freshUntil, freshUntil > now else { return nil }
        return Freshness(
            freshUntil: min(freshUntil, now + limit), initialAge: freshness.initialAge, isStorable: true)
    }
}
