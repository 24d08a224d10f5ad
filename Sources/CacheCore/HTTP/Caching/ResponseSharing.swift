/// The permission of shared caches in front of this service to reuse a response (RFC 9111 §3).
///
/// It follows from the credentials that opened the content. ``restricted(_:age:timeToLive:at:)`` applies it to the
/// caching fields that the upstream sent.
package enum ResponseSharing: Hashable, Sendable {
    /// As the upstream states: the content needs no credentials, or a shared cache has sent its own.
    case asStated
    /// None: the credentials are those of one reader. The reader's own cache may reuse the response.
    case readerOnly
    /// All caches, until then: the URL contains the permission.
    case until(Timestamp)

    /// Whether the lifetime in the restricted fields starts at the time of the response. `Age` must be omitted then.
    package var restartsAge: Bool { if case .until = self { true } else { false } }

    /// Returns the header fields with restricted caching fields.
    ///
    /// - `asStated` changes nothing.
    /// - `readerOnly` adds `private` and removes the directives that let a shared cache store a response to a request
    ///   with `Authorization` (RFC 9111 §3.5), except `must-revalidate`, which `private` outweighs.
    /// - `until` cuts `max-age` and `s-maxage` to the remaining validity, states the lifetime if the upstream has not,
    ///   and forbids stale use. `Date` is removed and `Age` must be omitted, because many caches count a lifetime from
    ///   the time of receipt, whatever `Age` says.
    ///
    /// Both remove the fields for other caches, such as `CDN-Cache-Control`, and replace `Expires` by `max-age`.
    ///
    /// - Parameters:
    ///   - headers: The fields of the stored response, with its `Date`.
    ///   - age: The age of the stored response.
    ///   - timeToLive: The remaining freshness of the stored response; nil: it must be validated before each use.
    package func restricted(
        _ headers: HeaderList, age: Duration?, timeToLive: Duration?, at now: @autoclosure () -> Timestamp
    ) -> HeaderList {
        guard self != .asStated else { return headers }
        let stated = StatedCaching(headers, age: age ?? .zero, timeToLive: timeToLive, now: now())
        var restricted = HeaderList(headers.fields.filter { !Self.isReplaced($0.name) })
        if restartsAge { restricted.remove("Date") }
        restricted.append("Cache-Control", stated.directives(for: self).joined(separator: ", "))
        return restricted
    }

    /// Whether the field is replaced by the restricted `Cache-Control`.
    private static func isReplaced(_ name: String) -> Bool {
        HeaderList.same(name, "Cache-Control") || HeaderList.same(name, "Expires") || CacheControl.isTargeted(name)
    }
}

extension CacheControl {
    /// Whether the field addresses some caches only: a targeted field of RFC 9213, or an earlier one of this kind.
    static func isTargeted(_ name: String) -> Bool {
        let name = FieldText.lowered(name)
        return name.hasSuffix("-cache-control")
            || ["edge-control", "surrogate-control", "x-accel-expires"].contains(name)
    }
}

/// The lifetime and the directives that the fields of a stored response state.
private struct StatedCaching {
    private let directives: [(name: String, argument: Substring?)]
    private let control: CacheControl
    /// The directives of the fields for some caches only.
    private let targeted: [CacheControl]
    /// The lifetime that `Expires` states; nil without the field.
    private let expiresAfter: Duration?
    private let age: Duration
    private let timeToLive: Duration?
    private let now: Timestamp

    init(_ headers: HeaderList, age: Duration, timeToLive: Duration?, now: Timestamp) {
        directives = CacheControl.directives(headers.values("Cache-Control"))
        control = CacheControl.parse(headers.values("Cache-Control"))
        targeted = headers.fields.filter { CacheControl.isTargeted($0.name) }.map { field in
            // `X-Accel-Expires` is a number of seconds. Its other forms count as 0.
            let isNumber = HeaderList.same(field.name, "X-Accel-Expires")
            return CacheControl.parse([isNumber ? "max-age=" + field.value : field.value])
        }
        let date = headers["Date"].flatMap { HTTPDate.parse($0, now: now) } ?? now - age
        expiresAfter = headers["Expires"].map { text in
            // An invalid date means expired (RFC 9111 §5.3).
            HTTPDate.parse(text, now: now).map { max(.zero, $0.since(date)) } ?? .zero
        }
        self.age = age
        self.timeToLive = timeToLive
        self.now = now
    }

    /// The directives of the restricted `Cache-Control`.
    func directives(for sharing: ResponseSharing) -> [String] {
        switch sharing {
        case .asStated: kept(without: [])
        case .readerOnly:
            ["private"] + kept(without: ["private", "public", "proxy-revalidate", "s-maxage"])
                + (control.maxAge == nil ? expiresAfter.map { ["max-age=\($0.components.seconds)"] } ?? [] : [])
        case .until(let end): directives(until: end)
        }
    }

    /// A lifetime stated for some caches only becomes `s-maxage`, because its field is removed. If such a field forbids
    /// reuse, or the end has come, no shared cache may reuse the response.
    private func directives(until end: Timestamp) -> [String] {
        if control.noStore, !control.mustUnderstand { return kept(without: []) }
        let left = max(0, end.since(now).components.seconds)
        func cut(_ lifetime: Duration) -> Int64 { min(max(0, (lifetime - age).components.seconds), left) }
        let isForbidden = left == 0 || targeted.contains { $0.noStore || $0.isPrivate || $0.noCache }
        let shared = [control.sharedMaxAge] + targeted.map { $0.sharedMaxAge ?? $0.maxAge }
        let own = control.maxAge ?? expiresAfter ?? timeToLive.map { $0 + age } ?? .zero
        let replaced = ["max-age", "must-revalidate", "s-maxage", "stale-if-error", "stale-while-revalidate"]
        let words =
            isForbidden ? ["private"] + kept(without: replaced + ["private", "public"]) : kept(without: replaced)
        return words + ["must-revalidate", "max-age=\(cut(own))"]
            + (isForbidden ? [] : shared.compactMap(\.self).min().map { ["s-maxage=\(cut($0))"] } ?? [])
    }

    /// The directives except those with the given names, as text.
    private func kept(without names: [String]) -> [String] {
        directives.filter { !names.contains($0.name) }.map { directive in
            directive.name + (directive.argument.map { "=" + $0 } ?? "")
        }
    }
}
