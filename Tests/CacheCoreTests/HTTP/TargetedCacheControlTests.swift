import CacheCore
import Testing

/// Targeted cache control (RFC 9213).
@Suite struct TargetedCacheControlTests {
    private static func effective(_ fields: [(String, String)]) -> CacheControl {
        var headers: HeaderList = [:]
        for (name, value) in fields { headers.append(name, value) }
        return CacheControl.effective(in: headers)
    }

    @Test("The most specific field applies")
    func theMostSpecificFieldCounts() {
        var fields = [("Cache-Control", "no-store"), ("CDN-Cache-Control", "max-age=60")]
        #expect(Self.effective(fields).maxAge == .seconds(60))
        #expect(!Self.effective(fields).noStore)
        fields.append(("Larder-Cache-Control", "max-age=5, must-revalidate"))
        #expect(Self.effective(fields).maxAge == .seconds(5))
        #expect(Self.effective(fields).mustRevalidate)
    }

    @Test(
        "A malformed dictionary is ignored",
        arguments: ["", "max-age=", "Max-Age=60", "max-age=60,", "max-age = 60", "\u{7F}"])
    func aFieldThatIsNoDictionaryIsIgnored(value: String) {
        let control = Self.effective([("CDN-Cache-Control", value), ("Cache-Control", "max-age=7")])
        #expect(control.maxAge == .seconds(7) && !control.isTargeted)
    }

    @Test(
        "A directive of the wrong type is ignored",
        arguments: ["max-age=\"60\"", "max-age", "max-age=6.5", "max-age=-1"])
    func aDirectiveOfAnotherTypeIsIgnored(value: String) {
        let control = Self.effective([("CDN-Cache-Control", value + ", no-cache")])
        #expect(control.maxAge == nil && control.noCache)
    }

    @Test("False booleans and parameters are ignored")
    func booleansMayBeFalseAndParametersAreIgnored() {
        let control = Self.effective([("CDN-Cache-Control", "no-store=?0, max-age=60;a=b, private=?1, unknown=(1 2)")])
        #expect(!control.noStore && control.isPrivate && control.maxAge == .seconds(60))
    }

    @Test("Expires is ignored beside a targeted field")
    func expiresIsIgnoredWithCacheControl() {
        let headers: HeaderList = [
            "CDN-Cache-Control": "must-revalidate", "Cache-Control": "max-age=600",
            "Expires": "Sun, 06 Nov 2094 08:49:37 GMT",
        ]
        let freshness = Freshness.of(
            UpstreamHead(status: 200, headers: headers), now: ResponseVerdictTests.now, settings: .explicit)
        #expect(freshness.freshUntil == nil && freshness.isStorable)
    }

    @Test("Larder-Cache-Control is stored and not forwarded")
    func theOwnFieldIsKeptAndNotPassedOn() {
        let sent: HeaderList = [
            "Larder-Cache-Control": "max-age=5", "CDN-Cache-Control": "max-age=6", "Larder-X": "1",
        ]
        let kept = StoredHeaders.of(sent)
        #expect(kept["Larder-Cache-Control"] == "max-age=5" && kept["Larder-X"] == nil)
        let generation = Generation(length: 10, headers: kept, receivedAt: ResponseVerdictTests.now)
        let plan = ContentPlan.make(
            ContentRequest(), generation: generation, now: ResponseVerdictTests.now, boundary: "b")
        #expect(plan.headers["Larder-Cache-Control"] == nil && plan.headers["CDN-Cache-Control"] == "max-age=6")
    }
}
