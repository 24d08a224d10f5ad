/// What a reader's `Cache-Control` asks of a cache (RFC 9111 §5.2.1).
package struct RequestDirectives: Hashable, Sendable {
    /// How much staleness a reader puts up with.
    package enum Tolerance: Hashable, Sendable {
        case none
        case upTo(Duration)
        case any
    }

    package var noCache = false
    /// Nothing of the answer is to be kept that was not kept before.
    package var noStore = false
    package var onlyIfCached = false
    package var maxAge: Duration?
    package var minFresh: Duration?
    package var maxStale = Tolerance.none
    /// RFC 5861 §4.
    package var staleIfError: Duration?

    package init() {}

    /// Reads the field's values; `Pragma: no-cache` counts where there is no `Cache-Control` (§5.4). As in responses, the
    /// first of two equal directives counts, and a number that is none is zero.
    package init(_ headers: HeaderList) {
        let values = headers.values("Cache-Control")
        if values.isEmpty {
            noCache = headers.values("Pragma").flatMap { FieldText.members(of: $0) }.contains {
                FieldText.lowered($0) == "no-cache"
            }
        }
        for directive in CacheControl.directives(values) { obey(directive.name, directive.argument) }
    }

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
