import CacheCore
import Testing

/// Responses forwarded unchanged.
@Suite struct PassedResponseTests {
    @Test("Encoded bodies are forwarded but not stored", arguments: ["gzip", "identity, br", "GZIP", "x"])
    func passesEncodedBodiesOn(coding: String) {
        guard
            case .whole(let found) = ResponseVerdictTests.judge(
                200, ["Content-Encoding": coding, "Content-Length": "9"])
        else {
            Issue.record("The response is not forwarded.")
            return
        }
        #expect(found.passedStatus == 200 && !found.isStorable && found.length == 9)
        #expect(found.headers["Content-Encoding"] == coding)
        #expect(!found.isJoinable(trusting: .immutable))
    }

    @Test(
        "The coding of S3 uploads is no coding of the stored bytes",
        arguments: [("aws-chunked", nil), ("identity,aws-chunked", nil), ("aws-chunked, gzip", "gzip")])
    func uploadCoding(_ coding: String, _ passed: String?) {
        guard case .whole(let found) = ResponseVerdictTests.judge(200, ["Content-Encoding": coding]) else {
            Issue.record("The response is not used.")
            return
        }
        #expect((found.passedStatus == nil) == (passed == nil) && found.headers["Content-Encoding"] == passed)
    }

    @Test("Other statuses are forwarded but not stored", arguments: [201, 204, 205, 226, 300, 301, 302, 307, 399])
    func passesOtherStatusesOn(status: Int) {
        guard
            case .changed(let found, let body) = ResponseVerdictTests.judge(
                status, ["X-A": "b"], known: ResponseVerdictTests.known)
        else {
            Issue.record("The response is not forwarded.")
            return
        }
        #expect(found.passedStatus == status && !found.isStorable && found.freshUntil == nil)
        #expect(body == 0..<([204, 205].contains(status) ? 0 : Int64.max))
        #expect(found.headers["X-A"] == "b")
    }

    @Test("203 counts as success")
    func takes203ForASuccess() {
        guard case .whole(let found) = ResponseVerdictTests.judge(203, ["Content-Length": "100"]) else {
            Issue.record("The verdict is not `.whole`.")
            return
        }
        #expect(found.passedStatus == nil && found.isStorable)
    }
}
