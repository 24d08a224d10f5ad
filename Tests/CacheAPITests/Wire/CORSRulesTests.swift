import CacheAPI
import HTTPTypes
import Testing

@Suite struct CORSRulesTests {
    @Test("Exposes the range fields")
    func exposesTheRangeFields() throws {
        let fields = CORSRules(origins: .any).headers(forOrigin: "https://player.example")
        let exposed = try #require(fields[.accessControlExposeHeaders])
        for name in ["Content-Range", "Content-Length", "Accept-Ranges", "ETag", "Cache-Status", "Age", "X-Request-Id"]
        {
            #expect(exposed.contains(name))
        }
        #expect(fields[.accessControlAllowOrigin] == "*")
    }

    @Test("Answers only allowed origins")
    func answersOnlyNamedOrigins() {
        let rules = CORSRules(origins: .these(["https://a.example"]))
        #expect(rules.headers(forOrigin: "https://a.example")[.accessControlAllowOrigin] == "https://a.example")
        #expect(rules.headers(forOrigin: "https://b.example")[.accessControlAllowOrigin] == nil)
        #expect(rules.headers(forOrigin: "https://b.example")[.vary] == "Origin")
        #expect(rules.preflightHeaders(forOrigin: "https://b.example", methods: "GET", asked: nil).isEmpty)
    }

    @Test("Adds no field without an Origin or when disabled")
    func saysNothingWithoutAnOriginOrWhenOff() {
        #expect(CORSRules(origins: .any).headers(forOrigin: nil).isEmpty)
        #expect(CORSRules(origins: .none).headers(forOrigin: "https://a.example").isEmpty)
    }

    @Test("Allows the fields that a preflight asks for")
    func allowsTheFieldsThatAPreflightAsksFor() {
        let fields = CORSRules().preflightHeaders(
            forOrigin: "https://a.example", methods: "GET, HEAD", asked: "range, authorization")
        #expect(fields[.accessControlAllowHeaders] == "range, authorization")
        #expect(fields[.accessControlAllowMethods] == "GET, HEAD")
        #expect(fields[.accessControlMaxAge] == "3600")
    }
}
