@testable import CacheAPI
import CacheCore
import HTTPTypes
import Testing

@Suite struct ProblemTests {
    @Test("Contains the members of RFC 9457 and the own members")
    func holdsTheMembersOfTheRFCAndOurs() throws {
        let error = CacheError(.invalidField("items[0].url"), "No.")
        let json = Problem(error, instance: "/v1/jobs", requestID: "r-1").document.json

        #expect(json["type"] == "urn:larder:problem:invalidField")
        #expect(json["title"] == "Invalid field")
        #expect(json["status"] == 422)
        #expect(json["detail"] == "No.")
        #expect(json["instance"] == "/v1/jobs")
        #expect(json["code"] == "invalidField")
        #expect(json["requestId"] == "r-1")
        #expect(json["field"] == "items[0].url")
    }

    @Test("The name of a field is cut, because a client can choose it")
    func fieldIsBounded() {
        let name = String(repeating: "é", count: 1_000_000)
        let problem = Problem(CacheError(.invalidField(name), "No."), instance: "/", requestID: "r").document
        #expect(problem.json["field"] == .string(String(repeating: "é", count: 256) + "…"))
    }

    @Test("The instance is a URI reference, also for a path that is none (RFC 9457 §3.1.5)")
    func instanceIsAReference() {
        let path = "/o/m/a b\u{E9}|%zz/%2e"
        let problem = Problem(CacheError(.notFound, "No."), instance: path, requestID: "r")
        #expect(problem.instance == "/o/m/a%20b%C3%A9%7C%25zz/%2e")
        let token = String(repeating: "a", count: 10) + "." + String(repeating: "b", count: 40)
        let masked = Problem(CacheError(.notFound, "No."), instance: "/t/eyJ\(token).c/x", requestID: "r").instance
        #expect(masked == "/t/%E2%80%A2%E2%80%A2%E2%80%A2/x")
    }

    @Test("Is sent as a problem document with no-store")
    func isSentAsAProblemDocumentThatNobodyStores() {
        let response = Problem(CacheError(.notFound, "No."), instance: "/", requestID: "r").response
        #expect(response.status.code == 404)
        #expect(response.headers[.contentType] == "application/problem+json")
        #expect(response.headers[.cacheControl] == "no-store")
    }

    @Test("States the timeout and the upstream status")
    func tellsWhichTimeoutAndWhichUpstreamStatus() {
        let late = Problem(CacheError(.upstreamTimedOut(.idle), "Late."), instance: "/", requestID: "r").document.json
        #expect(late["timeout"] == "idle" && late["status"] == 504)
        let refused = Problem(CacheError(.upstreamRefused(status: 500), "No."), instance: "/", requestID: "r").document
            .json
        #expect(refused["upstreamStatus"] == 500 && refused["status"] == 502)
    }

    @Test("A status comes with its required fields")
    func theFieldsThatBelongToAStatusComeWithIt() {
        #expect(CacheError.Code.unauthorized.headers[.wwwAuthenticate] == "Bearer realm=\"Larder\"")
        #expect(CacheError.Code.methodNotAllowed(allow: "GET, HEAD").headers[.allow] == "GET, HEAD")
        #expect(CacheError.Code.rangeNotSatisfiable(length: 10).headers[.contentRange] == "bytes */10")
        for code in [CacheError.Code.overloaded, .shuttingDown, .storageCorrupt, .rateLimited] {
            #expect(code.headers[.retryAfter] != nil)
        }
        #expect(CacheError.Code.upstreamUnreachable(retryAfter: .seconds(2)).headers[.retryAfter] == "2")
        #expect(CacheError.Code.upstreamUnreachable().contentHeaders.isEmpty)
    }

    @Test(
        "A content read maps the upstream status of the asset",
        arguments: [
            (400, 400), (401, 401), (403, 403), (404, 404), (405, 405), (410, 410), (429, 429), (451, 451), (499, 499),
            (500, 500), (503, 503), (504, 504), (599, 599), (407, 502), (412, 502), (416, 502), (417, 502), (421, 502),
            (426, 502), (431, 502), (511, 502), (301, 502), (304, 502), (204, 502), (600, 502),
        ])
    func contentReadsPassOnWhatTheUpstreamSaysOfTheAsset(upstream: Int, answered: Int) {
        let code = CacheError.Code.upstreamRefused(status: upstream)
        #expect(code.contentStatus == answered)
        #expect(code.status == 502)
    }

    @Test("A forwarded upstream status has its required fields")
    func whatIsPassedOnHasTheFieldsOfItsStatus() {
        #expect(CacheError.Code.upstreamRefused(status: 401).contentHeaders[.wwwAuthenticate] == "Upstream")
        #expect(CacheError.Code.upstreamRefused(status: 405).contentHeaders[.allow] == "OPTIONS")
        #expect(CacheError.Code.upstreamRefused(status: 407, retryAfter: .seconds(9)).contentHeaders.isEmpty)
        let late = CacheError.Code.upstreamRefused(status: 503, retryAfter: .milliseconds(8001))
        #expect(late.contentHeaders[.retryAfter] == "9")
        #expect(CacheError.Code.unauthorized.contentHeaders[.wwwAuthenticate] == "Bearer realm=\"Larder\"")
        let asked = CacheError.Code.upstreamRefused(
            status: 401, .init(challenges: ["Basic realm=\"a\"", "Digest x=1"]))
        #expect(asked.contentHeaders[values: .wwwAuthenticate] == ["Basic realm=\"a\"", "Digest x=1"])
        #expect(asked.headers.isEmpty)
    }

    @Test("An unknown error exposes no internals")
    func foreignErrorsTellNothingOfTheInside() {
        struct Secret: Error { let password = "hunter2" }
        let error = CacheError(foreign: Secret())
        #expect(error.code == .internal)
        #expect(!Problem(error, instance: "/", requestID: "r").document.jsonText.contains("hunter2"))
    }

    @Test(
        "Accepts only plain request identifiers",
        arguments: [
            ("abc-1._Z", true), (String(repeating: "a", count: 64), true), (String(repeating: "a", count: 65), false),
            ("", false), ("a b", false), ("a\"b", false), ("é", false),
        ])
    func takesOverOnlyPlainRequestIdentifiers(id: String, isTaken: Bool) {
        #expect((RequestCall.accepted(id) == id) == isTaken)
    }
}
