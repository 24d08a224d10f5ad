import CacheCore
import Testing

@Suite struct CacheControlTests {
    @Test("An oversized Cache-Control counts as no-store")
    func whatIsTooLongForAnybodyToMeanIsNotStored() {
        let long = "max-age=60" + String(repeating: ", a", count: CacheControl.maxBytes / 3)
        #expect(CacheControl.parse([long]).noStore && CacheControl.parse([long]).maxAge == nil)
        #expect(!CacheControl.parse(["max-age=60, a"]).noStore)
    }

    @Test("Parses every directive for a shared cache")
    func readsEveryDirectiveASharedCacheObeys() {
        let control = CacheControl.parse([
            "no-store, no-cache, private, public",
            "must-revalidate, proxy-revalidate, no-transform, must-understand, immutable",
            "max-age=1, s-maxage=2, stale-while-revalidate=3, stale-if-error=4",
        ])

        var expected = CacheControl()
        expected.noStore = true
        expected.noCache = true
        expected.isPrivate = true
        expected.isPublic = true
        expected.mustRevalidate = true
        expected.proxyRevalidate = true
        expected.noTransform = true
        expected.mustUnderstand = true
        expected.isImmutable = true
        expected.maxAge = .seconds(1)
        expected.sharedMaxAge = .seconds(2)
        expected.staleWhileRevalidate = .seconds(3)
        expected.staleIfError = .seconds(4)
        #expect(control == expected)
    }

    private static let ages: [(String, Int64)] = [
        ("max-age=60", Int64(60)), ("MAX-AGE=60", 60), ("max-age=\"60\"", 60), ("max-age=60, max-age=5", 60),
        ("max-age=99999999999999999999", 1 << 31), ("max-age=4294967296", 1 << 31), ("max-age=-1", 0),
        ("max-age=abc", 0),
        ("max-age=", 0), ("max-age", 0), ("max-age=1.5", 0), (" , ,max-age=7", 7), ("x=\"a, max-age=1\", max-age=2", 2),
        ("max-age = 9", 9),
    ]

    @Test("Parses max-age", arguments: ages)
    func readsMaxAge(text: String, seconds: Int64) {
        #expect(CacheControl.parse([text]).maxAge == .seconds(seconds))
    }

    @Test("Ignores unknown directives", arguments: ["", ",,,", "foo", "maxage=1", "x=\"max-age=1"])
    func passesOverWhatItDoesNotKnow(text: String) {
        #expect(CacheControl.parse([text]) == CacheControl())
    }

    @Test("A qualified directive withholds its named fields")
    func aQualifiedFormWithholdsTheFieldsItNames() {
        let control = CacheControl.parse(["private=\"X-A, x-b\", no-cache=set-cookie"])

        #expect(!control.isPrivate && !control.noCache)
        #expect(control.withheldFields == ["x-a", "x-b", "set-cookie"])
    }

    @Test(
        "A qualified directive without names is unqualified",
        arguments: ["private=\"\", no-cache=", "private=\" \", no-cache=\"a b\"", "private=\"@\", no-cache=\";\""])
    func aQualifiedFormThatNamesNothingIsAPlainOne(text: String) {
        let control = CacheControl.parse([text])

        #expect(control.isPrivate && control.noCache)
        #expect(control.withheldFields.isEmpty)
    }
}
