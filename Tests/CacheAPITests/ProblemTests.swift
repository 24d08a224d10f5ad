import CacheAPI
import CacheCore
import HTTPTypes
import HummingbirdCore
import Testing

@Suite struct ProblemTests {
    @Test func holdsTheMembersOfTheRFCAndOurs() throws {
        let error = CacheError(.invalidField("items[0].url"), "No.")
        let json = Problem(error, instance: "/v1/jobs", requestID: "r-1").json

        #expect(json["type"] == "urn:larder:problem:invalidField")
        #expect(json["title"] == "Invalid field")
        #expect(json["status"] == 422)
        #expect(json["detail"] == "No.")
        #expect(json["instance"] == "/v1/jobs")
        #expect(json["code"] == "invalidField")
        #expect(json["requestId"] == "r-1")
        #expect(json["field"] == "items[0].url")
    }

    @Test func isSentAsAProblemDocumentThatNobodyStores() {
        let response = Problem(CacheError(.notFound, "No."), instance: "/", requestID: "r").response
        #expect(response.status.code == 404)
        #expect(response.headers[.contentType] == "application/problem+json")
        #expect(response.headers[.cacheControl] == "no-store")
    }

    @Test func tellsWhichTimeoutAndWhichUpstreamStatus() {
        let late = Problem(CacheError(.upstreamTimedOut(.idle), "Late."), instance: "/", requestID: "r").json
        #expect(late["timeout"] == "idle" && late["status"] == 504)
        let refused = Problem(CacheError(.upstreamRefused(status: 500), "No."), instance: "/", requestID: "r").json
        #expect(refused["upstreamStatus"] == 500 && refused["status"] == 502)
    }

    @Test func theFieldsThatBelongToAStatusComeWithIt() {
        #expect(CacheError.Code.unauthorized.headers[.wwwAuthenticate] == "Bearer")
        #expect(CacheError.Code.methodNotAllowed(allow: "GET, HEAD").headers[.allow] == "GET, HEAD")
        #expect(CacheError.Code.rangeNotSatisfiable(length: 10).headers[.contentRange] == "bytes */10")
        for code in [CacheError.Code.overloaded, .shuttingDown, .storageCorrupt, .rateLimited] {
            #expect(code.headers[.retryAfter] != nil)
        }
    }

    @Test(arguments: [
        (404, 404), (410, 410), (403, 403), (429, 429), (451, 451), (401, 502), (407, 502), (500, 502), (301, 502),
    ])
    func contentReadsPassOnWhatTheUpstreamSaysOfTheAsset(upstream: Int, answered: Int) {
        #expect(CacheError.Code.upstreamRefused(status: upstream).contentStatus == answered)
    }

    @Test func foreignErrorsTellNothingOfTheInside() {
        struct Secret: Error { let password = "hunter2" }
        let error = CacheError(foreign: Secret())
        #expect(error.code == .internal)
        #expect(!Problem(error, instance: "/", requestID: "r").json.text.contains("hunter2"))
    }

    @Test(arguments: [
        ("abc-1._Z", true), (String(repeating: "a", count: 64), true), (String(repeating: "a", count: 65), false),
        ("", false), ("a b", false), ("a\"b", false), ("é", false),
    ])
    func takesOverOnlyPlainRequestIdentifiers(id: String, isTaken: Bool) {
        #expect((Envelope.accepted(id) == id) == isTaken)
    }
}
