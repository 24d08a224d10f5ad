/// The `Cache-Control` directives of a request (RFC 9111 §5.2.1).
package struct RequestDirectives: Hashable, Sendable {
    /// The staleness that a client accepts (`max-stale`).
    package enum Tolerance: Hashable, Sendable {
        case none
        case upTo(Duration)
        case any
    }

    package var noCache = false
    /// `no-store`: nothing of this response may be stored that was not stored before.
    package var noStore = false
    /// Respond with 504 instead of requesting the upstream.
    package var onlyIfCached = false
    /// The greatest accepted age; nil, like the other durations: the directive is absent.
    package var maxAge: Duration?
    /// The least accepted remaining lifetime.
    package var minFresh: Duration?
    package var maxStale = Tolerance.none
    /// `stale-if-error` (RFC 5861 §4).
    package var staleIfError: Duration?

    package init() {}

    /// Parses the directives. `Pragma: no-cache` counts if there is no `Cache-Control` (§5.4). As in responses, the
    /// first of two equal directives counts, and an invalid number is 0.
    package init(_ headers: HeaderList) {
        let values = headers.values("Cache-Control")
        if values.isEmpty {
            noCache = headers.values("Pragma").flatMap { FieldText.members(of: $0) }.contains {
                FieldText.lowered($0) == "no-cache"
            }
        }
        for directive in CacheControl.directives(values) { obey(directive.name, directive.argument) }
    }

    /// Applies one directive. `max-stale` without a number accepts any staleness.
    private mutating func obey(_ name: String, _ argument: Substring?) {
        switch name {
        case "no-cache": noCache = true
        case "no-store": noStore = true
        case "only-if-cached": onlyIfCached = true
        case "max-age": maxAge = maxAge ?? CacheControl.duration(argument)
        case "min-fresh": minFresh = minFresh ?? CacheControl.duration(argument)
        case "max-stale" where maxStale == .none:
            maxStale = argument == nil ? .any : .upTo(CacheControl.duration(argument))
        case "stale-if-error": staleIfError = staleIfError ?? CacheControl.duration(argument)
        default: break
        }
    }
}
