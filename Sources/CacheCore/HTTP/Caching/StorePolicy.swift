/// Decides which responses a shared cache may store (RFC 9111 §3).
package enum StorePolicy {
    /// Error statuses that describe the asset and may be reused if they have a lifetime. Excluded are 5xx, and statuses
    /// about the credentials, the conditions or the connection of the request.
    static let keptRefusals: Set<Int> = [403, 404, 405, 410, 414, 451]

    /// Whether a 200 or 206 may be stored.
    ///
    /// `must-understand` overrides `no-store`, because these statuses are understood (§5.2.2.3). Not an obstacle are:
    /// - `Vary` with field names: each variant is an asset of its own.
    /// - `Authorization` (§3.5): an origin's credentials belong to the cache, and those of clients are never forwarded.
    /// - `Set-Cookie` (§7.3): it is never stored.
    package static func allows(_ headers: HeaderList, _ control: CacheControl) -> Bool {
        let forbids = control.noStore && !control.mustUnderstand
        return !forbids && !control.isPrivate && !Variation.isOnEverything(headers)
    }

    /// The lifetime and age of an error response for the negative cache; nil: it must not be reused. Only an explicit
    /// lifetime counts, up to `limit` (nil: negative caching is off). A response with `Vary` is not reused.
    package static func refusal(_ head: UpstreamHead, now: Timestamp, atMost limit: Duration?) -> Freshness? {
        guard let limit, keptRefusals.contains(head.status), head.headers["Vary"] == nil else { return nil }
        let freshness = Freshness.of(head, now: now, settings: .explicit)
        guard freshness.isStorable, let freshUntil = freshness.freshUntil, freshUntil > now else { return nil }
        return Freshness(
            freshUntil: min(freshUntil, now + limit), initialAge: freshness.initialAge, isStorable: true)
    }
}
