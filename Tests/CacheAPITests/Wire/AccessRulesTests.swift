import CacheAPI
import CacheCore
import ReaderAccess
import Testing

@Suite struct AccessRulesTests {
    private let rules = AccessRules(tokens: [("reader", .read), ("boss", .admin)])

    private func code(_ body: () throws(CacheError) -> Void) -> CacheError.Code? {
        do {
            try body()
            return nil
        } catch {
            return error.code
        }
    }

    private func admit(
        _ rules: AccessRules, _ need: AccessRules.Need, _ authorization: String?, host: String? = "cache.example",
        isPublic: Bool = false
    ) -> CacheError.Code? {
        code { () throws(CacheError) in
            _ = try rules.admit(
                need, RequestCredentials(authorization: authorization), host: host, at: Timestamp(seconds: 0),
                contentIsPublic: isPublic)
        }
    }

    @Test("Health routes need no token")
    func healthNeedsNothing() {
        #expect(admit(rules, .nothing, nil) == nil)
        #expect(admit(AccessRules(), .nothing, nil, host: "evil.example") == nil)
    }

    @Test("A missing or unknown token is unauthorized")
    func aMissingOrUnknownTokenIsUnauthorized() {
        for authorization in [
            nil, "", "Bearer", "Bearer ", "Bearer nobody", "Basic cmVhZGVy", "reader", "Bearer readerr",
        ] {
            #expect(admit(rules, .scope(.read), authorization) == .unauthorized, "\(authorization ?? "none")")
        }
    }

    @Test("A token of insufficient scope is forbidden")
    func aTokenOfTooSmallAScopeIsForbidden() {
        #expect(admit(rules, .scope(.admin), "Bearer reader") == .tokenScope)
        #expect(admit(rules, .scope(.write), "Bearer reader") == .tokenScope)
    }

    @Test("A token admits to its scope and below")
    func tokensOpenWhatTheirScopeCovers() {
        #expect(admit(rules, .scope(.read), "Bearer reader") == nil)
        #expect(admit(rules, .scope(.read), "bearer  boss") == nil)
        #expect(admit(rules, .scope(.admin), "Bearer boss") == nil)
        #expect(admit(rules, .scope(.write), "Bearer boss") == nil)
        #expect(admit(rules, .content, "Bearer reader") == nil)
    }

    @Test("Content of public origins needs no token")
    func contentOfPublicOriginsNeedsNoToken() {
        #expect(admit(rules, .content, nil, isPublic: true) == nil)
        #expect(admit(rules, .content, nil, isPublic: false) == .unauthorized)
    }

    @Test(
        "Without tokens only local host names are served",
        arguments: [
            ("localhost", true), ("LOCALHOST:8080", true), ("127.0.0.1", true), ("127.0.0.1:1", true), ("[::1]", true),
            ("[::1]:8080", true), ("evil.example", false), ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("", false), ("localhost:80:80", false), ("[::2]", false), ("127.0.0.2", false),
        ])
    func withoutTokensOnlyLocalHostNamesAreServed(host: String, isServed: Bool) {
        #expect((admit(AccessRules(), .scope(.admin), nil, host: host) == nil) == isServed)
        #expect((admit(AccessRules(), .content, nil, host: host, isPublic: true) == nil) == isServed)
        #expect(admit(AccessRules(allowUnauthenticated: true), .scope(.admin), nil, host: host) == nil)
    }

    @Test("Without tokens a foreign Origin may not change anything")
    func withoutTokensOtherSitesChangeNothing() {
        let open = AccessRules()
        func origin(_ origin: String?, isChanging: Bool) -> CacheError.Code? {
            code { () throws(CacheError) in
                try open.admitOrigin(origin, isChanging: isChanging, isAllowed: { $0 == "https://dash.example" })
            }
        }
        #expect(origin("https://evil.example", isChanging: true) == .forbidden)
        #expect(origin("null", isChanging: true) == .forbidden)
        #expect(origin("https://evil.example", isChanging: false) == nil)
        #expect(origin("https://dash.example", isChanging: true) == nil)
        #expect(origin("http://localhost:3000", isChanging: true) == nil)
        #expect(origin(nil, isChanging: true) == nil)
    }
}
