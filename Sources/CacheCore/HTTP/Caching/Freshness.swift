/// How long a response may be used, how old it is, and whether a shared cache may keep it (RFC 9111 §3–4.2).
package struct Freshness: Hashable, Sendable {
    /// Until when it may be used unasked; may lie in the past. Nil: to be confirmed before each use.
    package var freshUntil: Timestamp?
    /// Its age on arrival (§4.2.3).
    package var initialAge: Duration
    package var isStorable: Bool

    package init(freshUntil: Timestamp?, initialAge: Duration, isStorable: Bool) {
        self.freshUntil = freshUntil
        self.initialAge = initialAge
        self.isStorable = isStorable
    }

    /// The longest lifetime that is guessed from `Last-Modified` (§4.2.2).
    package static let maxHeuristicLifetime = Duration.seconds(86_400)

    /// Judges a response that came at `now`.
    ///
    /// A missing or garbled `Date` counts as `now` (RFC 9110 §6.6.1). An administrator's `ttl` stands over everything
    /// the response says, prohibitions of storing too.
    package static func of(_ head: UpstreamHead, now: Timestamp, settings: OriginSettings.Freshness) -> Freshness {
        let date = head.headers["Date"].flatMap { HTTPDate.parse($0, now: now) } ?? now
        let age = initialAge(head, date: date, now: now)
        if case .ttl(let duration) = settings {
            return Freshness(freshUntil: now + duration, initialAge: age, isStorable: true)
        }
        let control = CacheControl.effective(in: head.headers)
        let isStorable = StorePolicy.allows(head.headers, control)
        guard isStorable, !control.noCache,
            let lifetime = lifetime(head.headers, control, date: date, now: now, isGuessing: settings == .respect)
        else {
            return Freshness(freshUntil: nil, initialAge: age, isStorable: isStorable)
        }
        let ways = head.earlier.compactMap { freshUntil($0, now: now, isGuessing: settings == .respect) }
        return Freshness(freshUntil: ([now + (lifetime - age)] + ways).min(), initialAge: age, isStorable: true)
    }

    /// Until when a redirect may be followed unasked, and with it what it led to used; nil: without limit.
    ///
    /// Where it says nothing a 301 or 308 is permanent, and any other status is for this once (RFC 9110 §15.4).
    private static func freshUntil(_ redirect: RedirectHead, now: Timestamp, isGuessing: Bool) -> Timestamp? {
        let head = UpstreamHead(status: redirect.status, headers: redirect.headers)
        let date = head.headers["Date"].flatMap { HTTPDate.parse($0, now: now) } ?? now
        let control = CacheControl.effective(in: head.headers)
        guard StorePolicy.allows(head.headers, control), !control.noCache else { return now }
        if let lifetime = lifetime(head.headers, control, date: date, now: now, isGuessing: false) {
            return now + (lifetime - initialAge(head, date: date, now: now))
        }
        return isGuessing && [301, 308].contains(redirect.status) ? nil : now
    }

    /// §4.2.3: the larger of what the `Date` shows and what the `Age` says plus the time the response took.
    private static func initialAge(_ head: UpstreamHead, date: Timestamp, now: Timestamp) -> Duration {
        let apparent = max(.zero, now.since(date))
        // Of several values the first counts, and one that is no number for nothing (§5.1).
        let value = head.headers["Age"].flatMap { FieldText.members(of: $0).first }
        let seconds = value.flatMap { FieldText.clampedNumber($0.utf8) } ?? 0
        return max(apparent, .seconds(min(seconds, CacheControl.maxSeconds)) + (head.timings.firstByte ?? .zero))
    }

    /// §4.2.1 in its order; nil where nothing is said and nothing can be guessed.
    private static func lifetime(
        _ headers: HeaderList, _ control: CacheControl, date: Timestamp, now: Timestamp, isGuessing: Bool
    ) -> Duration? {
        if let shared = control.sharedMaxAge ?? control.maxAge { return shared }
        if !control.isTargeted, let expires = headers["Expires"] {
            guard let time = HTTPDate.parse(expires, now: now) else { return .zero }  // garbled is expired (§5.3)
            return max(.zero, time.since(date))
        }
        guard isGuessing, let modified = headers["Last-Modified"].flatMap({ HTTPDate.parse($0, now: now) }),
            modified < date
        else { return nil }
        return min(date.since(modified) / 10, maxHeuristicLifetime)
    }
}
