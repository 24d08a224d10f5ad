@testable import CacheAPI
import CacheCore
import Foundation
import HTTPTypes
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

    /// The value of `WWW-Authenticate`.
    private func challenge(_ need: AccessRules.Need, _ authorization: String?) -> String? {
        do throws(CacheError) {
            _ = try rules.admit(
                need, RequestCredentials(authorization: authorization), host: "x", at: Timestamp(seconds: 0))
            return nil
        } catch {
            return error.headers[.wwwAuthenticate]
        }
    }

    @Test("The challenge has an error code for a bad token only (RFC 6750 §3.1)")
    func challenges() {
        #expect(challenge(.scope(.read), nil) == "Bearer realm=\"Larder\"")
        #expect(challenge(.scope(.read), "Basic eDp5") == "Bearer realm=\"Larder\"")
        #expect(challenge(.scope(.read), "Bearer nobody") == "Bearer error=\"invalid_token\"")
        #expect(challenge(.content, "bearer\tnobody") == "Bearer error=\"invalid_token\"")
        #expect(
            challenge(.scope(.write), "Bearer reader") == "Bearer error=\"insufficient_scope\", scope=\"write\"")
    }

    /// The spellings of `Authorization` with a token.
    private static let spellings = [
        "Bearer {}", "bearer {}", "BEARER  {}", "Bearer\t{}", " Bearer {} ", "Bearer {},", "Bearer {}, Basic eDp5",
        "Basic eDp5, Bearer {}", "Basic eDp5,Bearer\t{}", "Bearer x, Bearer {}", "Bearer \"{}\"", "Token {}",
        "Bearer token={}", "Digest a=1, token=\"{}\"", "{}", "Bearer {};", "Bearer:{}", "Bearer {}=", "Bearer '{}'",
        "<{}>",
        "Bearer {}/", "Bearer {}|x", "Bearer a:{}", "Bearer a/{}", "Bearer x.{}", "Bearer {}%20", "Bearer %22{}%22",
    ]

    @Test("An ended token of this service is refused in every spelling, also for public content", arguments: spellings)
    func endedTokens(spelling: String) {
        let directory = ReaderDirectory()
        directory.update(adminToken: "gone", readToken: "reader")
        directory.update(adminToken: "boss", readToken: "reader")
        let rules = AccessRules(directory)
        func credentials(_ token: String) -> RequestCredentials {
            RequestCredentials(authorization: spelling.replacing("{}", with: token))
        }
        for isPublic in [true, false] {
            #expect(admit(rules, .content, credentials("gone").authorization, isPublic: isPublic) == .unauthorized)
        }
        for token in ["gone", "boss", "reader"] { #expect(rules.isOwn(credentials(token), at: Timestamp(seconds: 0))) }
        #expect(!rules.isOwn(credentials("stranger"), at: Timestamp(seconds: 0)))
        #expect(admit(rules, .content, credentials("stranger").authorization, isPublic: true) == nil)
    }

    @Test("A token of this service inside Basic credentials is found (RFC 7617 §2)")
    func basicCredentials() {
        for pair in ["reader:x", "x:reader", ":boss", "reader:"] {
            let authorization = "Basic " + Data(pair.utf8).base64EncodedString()
            let credentials = RequestCredentials(authorization: authorization)
            #expect(rules.isOwn(credentials, at: Timestamp(seconds: 0)), "\(pair)")
        }
    }

    @Test("Credentials of an upstream are no tokens of this service")
    func foreignCredentials() {
        for authorization in [
            "Basic eDp5", "Digest username=\"reader2\", realm=\"x\"", "Bearer other", "Bearer a.b.c", "Bearer",
            "AWS4-HMAC-SHA256 Credential=AKIA/20260101/eu/s3/aws4_request, Signature=abc", "",
        ] {
            #expect(admit(rules, .content, authorization, isPublic: true) == nil, "\(authorization)")
            let credentials = RequestCredentials(authorization: authorization)
            #expect(!rules.isOwn(credentials, at: Timestamp(seconds: 0)), "\(authorization)")
        }
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
