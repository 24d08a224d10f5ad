/// The caching properties of a response: freshness lifetime, age and storability (RFC 9111 §3–4.2).
package struct Freshness: Hashable, Sendable {
    /// The response is fresh until then; it may be in the past. Nil: it must be validated before every use.
    package var freshUntil: Timestamp?
    /// The age on arrival (§4.2.3).
    package var initialAge: Duration
    /// Whether a shared cache may store the response (§3).
    package var isStorable: Bool
    /// Nil: the response states a lifetime, or no heuristic is permitted.
    package var guess: Guess?

    /// The heuristic lifetime of a response that states none (§4.2.2).
    package struct Guess: Hashable, Sendable {
        /// The end of the lifetime by `Last-Modified`; nil: none.
        package var end: Timestamp?
        /// The end of the lifetimes of redirects; nil: no limit.
        package var limit: Timestamp?
    }

    package init(freshUntil: Timestamp?, initialAge: Duration, isStorable: Bool) {
        self.freshUntil = freshUntil
        self.initialAge = initialAge
        self.isStorable = isStorable
    }

    /// The longest heuristic lifetime, derived from `Last-Modified` (§4.2.2).
    static let maxHeuristicLifetime = Duration.seconds(86_400)

    /// Computes the properties of a response received at `now`.
    ///
    /// A missing or invalid `Date` counts as `now` (RFC 9110 §6.6.1). With an administrator's `ttl`, all directives of
    /// the response are ignored, including those that prohibit storing. Otherwise, after redirects, the earliest expiry
    /// in the chain counts.
    package static func of(_ head: UpstreamHead, now: Timestamp, settings: OriginSettings.Freshness) -> Freshness {
        let date = head.headers["Date"].flatMap { HTTPDate.parse($0, now: now) } ?? now
        let age = initialAge(head, date: date, now: now)
        if case .ttl(let duration) = settings {
            return Freshness(freshUntil: now + duration, initialAge: age, isStorable: true)
        }
        let control = CacheControl.effective(in: head.headers)
        let isStorable = StorePolicy.allows(head.headers, control)
        var freshness = Freshness(freshUntil: nil, initialAge: age, isStorable: isStorable)
        guard isStorable, !control.noCache else { return freshness }
        let limit = head.earlier.compactMap { freshUntil($0, now: now, isGuessing: settings == .respect) }.min()
        let stated = lifetime(head.headers, control, date: date, now: now)
        let lifetime = stated ?? (settings == .respect ? heuristicLifetime(head.headers, date: date, now: now) : nil)
        freshness.freshUntil = lifetime.map { end(of: $0, age: age, limit: limit, now: now) }
        if stated == nil, settings == .respect { freshness.guess = Guess(end: freshness.freshUntil, limit: limit) }
        return freshness
    }

    /// The end of a lifetime of a response with this age, at most the limit of redirects.
    static func end(of lifetime: Duration, age: Duration, limit: Timestamp?, now: Timestamp) -> Timestamp {
        [now + (lifetime - age), limit].compactMap(\.self).min() ?? now
    }

    /// The time until which a redirect may be followed without validation; the target's response expires with it. Nil:
    /// no limit.
    ///
    /// Without an explicit lifetime, 301 and 308 are permanent and any other status must not be reused
    /// (RFC 9110 §15.4).
    private static func freshUntil(_ redirect: RedirectHead, now: Timestamp, isGuessing: Bool) -> Timestamp? {
        let head = UpstreamHead(status: redirect.status, headers: redirect.headers)
        let date = head.headers["Date"].flatMap { HTTPDate.parse($0, now: now) } ?? now
        let control = CacheControl.effective(in: head.headers)
        guard StorePolicy.allows(head.headers, control), !control.noCache else { return now }
        if let lifetime = lifetime(head.headers, control, date: date, now: now) {
            return now + (lifetime - initialAge(head, date: date, now: now))
        }
        return isGuessing && [301, 308].contains(redirect.status) ? nil : now
    }

    /// The time until which the target of these redirects may be used without them: the earliest end of their explicit
    /// lifetimes, or `signedUntil` where they state none. Nil: they must be requested for each use.
    package static func end(
        of redirects: [RedirectHead], signedUntil: Timestamp?, now: Timestamp
    ) -> Timestamp? {
        let ends = redirects.map { redirect -> Timestamp in
            let end = freshUntil(redirect, now: now, isGuessing: false) ?? now
            let statesNothing = redirect.headers["Cache-Control"] == nil && redirect.headers["Expires"] == nil
            return statesNothing ? max(end, signedUntil ?? now) : end
        }
        guard let end = (ends + [signedUntil].compactMap(\.self)).min(), end > now else { return nil }
        return end
    }

    /// §4.2.3: the larger of the apparent age (from `Date`) and the corrected age (`Age` plus the time to the first
    /// byte).
    private static func initialAge(_ head: UpstreamHead, date: Timestamp, now: Timestamp) -> Duration {
        let apparent = max(.zero, now.since(date))
        // The first of several values counts; an invalid value is ignored (§5.1).
        let value = head.headers["Age"].flatMap { FieldText.members(of: $0).first }
        let seconds = value.flatMap { FieldText.clampedNumber($0.utf8) } ?? 0
        return max(apparent, .seconds(min(seconds, CacheControl.maxSeconds)) + (head.timings.firstByte ?? .zero))
    }

    /// The stated freshness lifetime in the order of §4.2.1; nil if there is none.
    private static func lifetime(
        _ headers: HeaderList, _ control: CacheControl, date: Timestamp, now: Timestamp
    ) -> Duration? {
        if let shared = control.sharedMaxAge ?? control.maxAge { return shared }
        if !control.isTargeted, let expires = headers["Expires"] {
            guard let time = HTTPDate.parse(expires, now: now) else { return .zero }  // invalid means expired (§5.3)
            return max(.zero, time.since(date))
        }
        return nil
    }

    /// The lifetime of a response that states none (§4.2.2); nil without a usable `Last-Modified`.
    private static func heuristicLifetime(_ headers: HeaderList, date: Timestamp, now: Timestamp) -> Duration? {
        guard let modified = headers["Last-Modified"].flatMap({ HTTPDate.parse($0, now: now) }), modified < date
        else { return nil }
        return min(date.since(modified) / 10, maxHeuristicLifetime)
    }
}
