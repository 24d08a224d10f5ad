import CacheCore
import Testing

@Suite struct StorePolicyTests {
    private static let now = Timestamp(seconds: 784_111_777)  // Sun, 06 Nov 1994 08:49:37 GMT

    private static let answers: [(HeaderList, Bool)] = [
        ([:], true),
        (["Cache-Control": "max-age=60"], true),
        (["Cache-Control": "no-cache"], true),
        (["Cache-Control": "no-store"], false),
        (["Cache-Control": "no-store, must-understand"], true),
        (["Cache-Control": "private"], false),
        (["Cache-Control": "public, private"], false),
        (["Cache-Control": "private, must-understand"], false),
        (["Cache-Control": "private=\"x\""], true),
        (["Cache-Control": "no-cache=\"x\""], true),
        (["Cache-Control": "max-age=60", "cache-control": "no-store"], false),
        (["Vary": "*"], false),
        (["Vary": "Accept, *"], false),
        (["Vary": "Accept", "vary": "*"], false),
        (["Vary": "Accept-Language"], true),
        (["Set-Cookie": "a=b"], true),
    ]

    @Test("Stores only responses that a shared cache may store", arguments: answers)
    func keepsWhatASharedCacheMay(headers: HeaderList, isAllowed: Bool) {
        #expect(StorePolicy.allows(headers, CacheControl.parse(headers.values("Cache-Control"))) == isAllowed)
    }

    @Test("Caches refusals with a lifetime", arguments: [403, 404, 405, 410, 414, 451])
    func keepsRefusalsWithALifetime(status: Int) {
        #expect(refusal(status, ["Cache-Control": "max-age=60"])?.freshUntil == Self.now + .seconds(60))
    }

    @Test("Caches no other status", arguments: [200, 301, 400, 401, 407, 408, 416, 421, 429, 500, 502, 503, 504])
    func keepsNoOtherStatus(status: Int) {
        #expect(refusal(status, ["Cache-Control": "max-age=60"]) == nil)
    }

    private static let lifetimes: [(HeaderList, Int64?)] = [
        (["Cache-Control": "s-maxage=60, max-age=10"], 60),
        (["Expires": "Sun, 06 Nov 1994 08:50:37 GMT"], 60),
        (["Cache-Control": "max-age=60", "Age": "20"], 40),
        (["Cache-Control": "max-age=3600"], 300),
        ([:], nil),
        (["Last-Modified": "Sun, 06 Nov 1983 08:49:37 GMT"], nil),
        (["Cache-Control": "public"], nil),
        (["Cache-Control": "max-age=0"], nil),
        (["Cache-Control": "max-age=60", "Age": "60"], nil),
        (["Cache-Control": "max-age=60, no-store"], nil),
        (["Cache-Control": "max-age=60, private"], nil),
        (["Cache-Control": "max-age=60, no-cache"], nil),
        (["Cache-Control": "max-age=60", "Vary": "X-One"], nil),
    ]

    @Test("A refusal is cached for its stated lifetime", arguments: lifetimes)
    func countsTheLifetimeARefusalStates(headers: HeaderList, seconds: Int64?) {
        #expect(refusal(404, headers)?.freshUntil == seconds.map { Self.now + .seconds($0) })
    }

    @Test("Caches no refusal if negative caching is off")
    func keepsNoRefusalWhereThatIsOff() {
        let head = UpstreamHead(status: 404, headers: ["Cache-Control": "max-age=60"])

        #expect(StorePolicy.refusal(head, now: Self.now, atMost: nil) == nil)
    }

    private func refusal(_ status: Int, _ headers: HeaderList) -> Freshness? {
        StorePolicy.refusal(UpstreamHead(status: status, headers: headers), now: Self.now, atMost: .seconds(300))
    }
}
