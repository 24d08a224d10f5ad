import CacheCore
import Testing

@Suite struct FreshnessTests {
    private static let now = Timestamp(seconds: 784_111_777)  // Sun, 06 Nov 1994 08:49:37 GMT
    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"

    private func judge(
        _ headers: HeaderList, settings: OriginSettings.Freshness = .respect, firstByte: Duration? = nil
    ) -> Freshness {
        let head = UpstreamHead(status: 200, headers: headers, timings: TransferTimings(firstByte: firstByte))
        return Freshness.of(head, now: Self.now, settings: settings)
    }

    private static let lifetimes: [(HeaderList, Int64)] = [
        (["Cache-Control": "max-age=60"], 60),
        (["Cache-Control": "max-age=60, s-maxage=10"], 10),
        (["Cache-Control": "max-age=60", "Expires": "Sun, 06 Nov 1994 08:49:38 GMT"], 60),
        (["Date": date, "Expires": "Sun, 06 Nov 1994 08:50:37 GMT"], 60),
        (["Date": "Sun, 06 Nov 1994 08:49:07 GMT", "Expires": "Sun, 06 Nov 1994 08:50:37 GMT"], 60),
        (["Expires": "Sun, 06 Nov 1994 08:50:37 GMT"], 60),
        (["Date": "garbled", "Expires": "Sun, 06 Nov 1994 08:50:37 GMT"], 60),
        (["Expires": "0"], 0),
        (["Expires": "Sun, 06 Nov 1993 08:50:37 GMT"], 0),
        (["Date": date, "Last-Modified": "Sun, 06 Nov 1994 08:49:27 GMT"], 1),
        (["Date": date, "Last-Modified": "Sun, 06 Nov 1983 08:49:37 GMT"], 86_400),
        (["Cache-Control": "max-age=60", "Age": "20"], 40),
        (["Cache-Control": "max-age=60", "Date": "Sun, 06 Nov 1994 08:49:07 GMT"], 30),
        (["Cache-Control": "max-age=60", "Date": "Sun, 06 Nov 1994 08:49:07 GMT", "Age": "45"], 15),
        (["Cache-Control": "max-age=60", "Date": "Sun, 06 Nov 1994 09:49:37 GMT"], 60),
        (["Cache-Control": "max-age=60", "Age": "x"], 60),
        (["Cache-Control": "max-age=60", "Age": "99999999999999999999"], 60 - (1 << 31)),
        (["Cache-Control": "max-age=0"], 0),
        (["Cache-Control": "max-age=60", "Vary": "Accept-Encoding"], 60),
    ]

    @Test("The lifetime follows the headers", arguments: lifetimes)
    func lastsAsLongAsTheHeadersSay(headers: HeaderList, seconds: Int64) {
        let freshness = judge(headers)

        #expect(freshness.isStorable)
        #expect(freshness.freshUntil == Self.now + .seconds(seconds))
    }

    private static let redirects: [(Int, HeaderList, Int64)] = [
        (302, [:], 0), (302, ["Cache-Control": "max-age=20"], 20), (302, ["Cache-Control": "max-age=600"], 60),
        (302, ["Cache-Control": "max-age=20", "Age": "15"], 5), (302, ["Cache-Control": "no-store, max-age=20"], 0),
        (302, ["Cache-Control": "private, max-age=20"], 0), (302, ["Cache-Control": "no-cache, max-age=20"], 0),
        (307, ["Expires": "0"], 0), (301, [:], 60), (308, [:], 60), (301, ["Cache-Control": "max-age=20"], 20),
    ]

    /// A response behind a redirect is not fresh for longer than the redirect (RFC 9110 §15.4).
    @Test("The lifetime is limited by that of the redirect", arguments: redirects)
    func lastsNoLongerThanTheRedirectThatLedToIt(status: Int, headers: HeaderList, seconds: Int64) {
        var head = UpstreamHead(status: 200, headers: ["Cache-Control": "max-age=60"])
        head.earlier = [RedirectHead(status: status, headers: headers)]

        let freshness = Freshness.of(head, now: Self.now, settings: .respect)

        #expect(freshness.freshUntil == Self.now + .seconds(seconds))
        #expect(freshness.isStorable)
        #expect(Freshness.of(head, now: Self.now, settings: .ttl(.seconds(90))).freshUntil == Self.now + .seconds(90))
    }

    private static let ungranted: [HeaderList] = [
        [:], ["Cache-Control": "no-cache, max-age=60"], ["Cache-Control": "public"],
        ["Last-Modified": "Sun, 06 Nov 1994 09:49:37 GMT"], ["Last-Modified": "garbled"],
    ]

    @Test("A response without a lifetime is never fresh", arguments: ungranted)
    func isNeverFreshWhereNothingGrantsIt(headers: HeaderList) {
        let freshness = judge(headers)

        #expect(freshness.isStorable)
        #expect(freshness.freshUntil == nil)
    }

    private static let forbidden: [HeaderList] = [
        ["Cache-Control": "no-store, max-age=60"], ["Cache-Control": "private, max-age=60"],
        ["Cache-Control": "max-age=60", "Vary": "*"], ["Cache-Control": "max-age=60", "Vary": "Accept, *"],
    ]

    @Test("A forbidden response is not storable", arguments: forbidden)
    func isNotStorableWhereForbidden(headers: HeaderList) {
        let freshness = judge(headers)

        #expect(!freshness.isStorable)
        #expect(freshness.freshUntil == nil)
    }

    @Test("The initial age includes the response time")
    func addsTheTimeTheResponseTookToItsAge() {
        let freshness = judge(["Age": "10", "Cache-Control": "max-age=60"], firstByte: .seconds(2))

        #expect(freshness.initialAge == .seconds(12))
        #expect(freshness.freshUntil == Self.now + .seconds(48))
    }

    @Test("A configured TTL overrides all response headers")
    func theAdministratorsLifetimeStandsOverAll() {
        let freshness = judge(
            ["Cache-Control": "no-store, private, no-cache, max-age=0", "Vary": "*", "Age": "500"],
            settings: .ttl(.seconds(30)))

        #expect(freshness.isStorable)
        #expect(freshness.freshUntil == Self.now + .seconds(30))
    }
}
