import CacheCore
import Testing

@Suite struct StoredUseTests {
    private static let now = Timestamp(seconds: 1_000_000)

    /// Received 100 s ago, with `left` seconds of remaining lifetime. nil: requires confirmation before each use.
    private func generation(_ control: String, left: Int64?) -> Generation {
        Generation(
            headers: ["Cache-Control": control], receivedAt: Self.now + .seconds(-100),
            freshUntil: left.map { Self.now + .seconds($0) })
    }

    private func rules(
        _ request: String = "", freshness: OriginSettings.Freshness = .respect, staleIfError: Int64? = nil
    ) -> UseRules {
        UseRules(
            freshness: freshness, staleIfError: staleIfError.map { .seconds($0) },
            directives: request.isEmpty ? RequestDirectives() : RequestDirectives(["Cache-Control": request]))
    }

    private static let uses: [(control: String, left: Int64?, request: String, use: StoredUse)] = [
        ("max-age=200", 100, "", .fresh),
        ("max-age=100", 0, "", .confirm),
        ("max-age=50", -50, "", .confirm),
        ("no-cache", nil, "", .confirm),
        ("max-age=200", 100, "no-cache", .confirmOnRequest),
        ("max-age=50", -50, "no-cache", .confirm),
        ("max-age=200", 100, "max-age=100", .fresh),
        ("max-age=200", 100, "max-age=99", .confirmOnRequest),
        ("max-age=50", -50, "max-age=99", .confirm),
        ("max-age=200", 100, "min-fresh=100", .fresh),
        ("max-age=200", 100, "min-fresh=101", .confirmOnRequest),
        ("max-age=50", -50, "max-stale", .stale),
        ("max-age=50", -50, "max-stale=50", .stale),
        ("max-age=50", -50, "max-stale=49", .confirm),
        ("max-age=50", -50, "max-stale, max-age=99", .confirm),
        ("max-age=50", -50, "max-stale, min-fresh=0", .confirm),
        ("max-age=50", -50, "max-stale, no-cache", .confirm),
        ("max-age=50, must-revalidate", -50, "max-stale", .confirm),
        ("max-age=50, proxy-revalidate", -50, "max-stale", .confirm),
        ("s-maxage=50", -50, "max-stale", .confirm),
        ("no-cache", nil, "max-stale", .confirm),
        ("no-cache=\"x\", max-age=50", -50, "max-stale", .stale),
        ("max-age=50, stale-while-revalidate=50", -50, "", .staleWhileRevalidate),
        ("max-age=50, stale-while-revalidate=49", -50, "", .confirm),
        ("max-age=50, stale-while-revalidate=50", -50, "max-stale", .stale),
        ("max-age=50, stale-while-revalidate=50", -50, "max-age=3600", .confirm),
        ("max-age=50, stale-while-revalidate=50, must-revalidate", -50, "", .confirm),
        ("s-maxage=50, stale-while-revalidate=50", -50, "", .confirm),
        ("max-age=200, stale-while-revalidate=50", 100, "", .fresh),
    ]

    @Test("A stored response is used as request and response allow", arguments: uses)
    func isUsedAsBothSidesAllow(control: String, left: Int64?, request: String, use: StoredUse) {
        #expect(generation(control, left: left).use(at: Self.now, under: rules(request)) == use)
    }

    @Test(
        "A configured TTL overrides the response directives",
        arguments: ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=1"])
    func anAdministratorsLifetimeStandsOverTheResponse(directive: String) {
        let generation = generation("\(directive), stale-while-revalidate=50", left: -50)

        #expect(generation.use(at: Self.now, under: rules(freshness: .ttl(.seconds(50)))) == .staleWhileRevalidate)
        #expect(generation.use(at: Self.now, under: rules()) == .confirm)
    }

    private static let errors: [(control: String, request: String, setting: Int64?, isUsed: Bool)] = [
        ("max-age=50", "", nil, false),
        ("max-age=50, stale-if-error=50", "", nil, true),
        ("max-age=50, stale-if-error=49", "", nil, false),
        ("max-age=50, stale-if-error=0", "", 50, true),
        ("max-age=50, stale-if-error=50", "", 0, false),
        ("max-age=50", "", 50, true),
        ("max-age=50", "stale-if-error=50", nil, true),
        ("max-age=50", "stale-if-error=49", nil, false),
        ("max-age=50, stale-if-error=50", "no-cache", nil, false),
        ("max-age=50, stale-if-error=50, must-revalidate", "", nil, false),
        ("max-age=50, must-revalidate", "", 50, false),
        ("max-age=50, proxy-revalidate", "stale-if-error=50", 50, false),
        ("s-maxage=50, stale-if-error=50", "", 50, false),
        ("no-cache, stale-if-error=50", "", 50, false),
    ]

    @Test("Serves stale on errors as long as allowed", arguments: errors)
    func standsInForErrorsAsLongAsAllowed(control: String, request: String, setting: Int64?, isUsed: Bool) {
        let rules = rules(request, staleIfError: setting)

        #expect(generation(control, left: -50).servesErrors(at: Self.now, under: rules) == isUsed)
    }

    private static let failures: [(CacheError.Code, Bool)] = [
        (.upstreamUnreachable(), true), (.upstreamProtocol, true), (.upstreamTimedOut(.firstByte), true),
        (.upstreamRefused(status: 500), true), (.upstreamRefused(status: 503), true),
        (.upstreamRefused(status: 501), false), (.upstreamRefused(status: 404), false),
        (.upstreamRefused(status: 429), false), (.storageFull, false), (.cancelled, false),
    ]

    @Test("A deliberate upstream status is no failure", arguments: failures)
    func aDecisionOfTheUpstreamIsNoFailure(code: CacheError.Code, isFailure: Bool) {
        #expect(code.isUpstreamFailure == isFailure)
    }
}
