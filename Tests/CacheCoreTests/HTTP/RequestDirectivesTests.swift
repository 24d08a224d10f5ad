import CacheCore
import Testing

@Suite struct RequestDirectivesTests {
    private static func directives(_ change: (inout RequestDirectives) -> Void) -> RequestDirectives {
        var directives = RequestDirectives()
        change(&directives)
        return directives
    }

    private static let readings: [(HeaderList, RequestDirectives)] = [
        ([:], directives { _ in }),
        (["Cache-Control": "no-cache"], directives { $0.noCache = true }),
        (["Cache-Control": "No-Cache=foo"], directives { $0.noCache = true }),
        (["Cache-Control": "no-store, only-if-cached"], directives { ($0.noStore, $0.onlyIfCached) = (true, true) }),
        (["Cache-Control": "MAX-AGE=60"], directives { $0.maxAge = .seconds(60) }),
        (["Cache-Control": "max-age=\"60\""], directives { $0.maxAge = .seconds(60) }),
        (["Cache-Control": "max-age=0, max-age=60"], directives { $0.maxAge = .zero }),
        (["Cache-Control": "max-age=60", "cache-control": "max-age=0"], directives { $0.maxAge = .seconds(60) }),
        (["Cache-Control": "max-age"], directives { $0.maxAge = .zero }),
        (["Cache-Control": "max-age=-1"], directives { $0.maxAge = .zero }),
        (["Cache-Control": "min-fresh=99999999999999999999"], directives { $0.minFresh = .seconds(1 << 31) }),
        (["Cache-Control": "max-stale"], directives { $0.maxStale = .any }),
        (["Cache-Control": "max-stale=10"], directives { $0.maxStale = .upTo(.seconds(10)) }),
        (["Cache-Control": "max-stale=10, max-stale"], directives { $0.maxStale = .upTo(.seconds(10)) }),
        (["Cache-Control": "max-stale=x"], directives { $0.maxStale = .upTo(.zero) }),
        (["Cache-Control": "stale-if-error=5"], directives { $0.staleIfError = .seconds(5) }),
        (["Cache-Control": "foo=\"no-cache, no-store\", must-revalidate, private"], directives { _ in }),
    ]

    @Test("Parses the directives of a request", arguments: readings)
    func readsWhatAReaderAsks(headers: HeaderList, expected: RequestDirectives) {
        #expect(RequestDirectives(headers) == expected)
    }

    private static let pragmas: [(HeaderList, Bool)] = [
        (["Pragma": "no-cache"], true), (["Pragma": "foo, No-Cache"], true), (["Pragma": "foo"], false),
        (["Pragma": "no-cache", "Cache-Control": "max-age=60"], false),
        (["Pragma": "no-cache", "Cache-Control": ""], false),
    ]

    @Test("Pragma applies only without Cache-Control", arguments: pragmas)
    func obeysPragmaWithoutCacheControlAlone(headers: HeaderList, noCache: Bool) {
        #expect(RequestDirectives(headers).noCache == noCache)
    }
}
