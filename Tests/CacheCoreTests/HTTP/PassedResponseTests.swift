import CacheCore
import Testing

/// Responses that are passed on as they came.
@Suite struct PassedResponseTests {
    @Test(arguments: ["gzip", "identity, br", "GZIP", "x"])
    func passesEncodedBodiesOn(coding: String) {
        guard
            case .whole(let found) = HeadJudgementTests.judge(200, ["Content-Encoding": coding, "Content-Length": "9"])
        else {
            Issue.record("the response is passed on")
            return
        }
        #expect(found.passedStatus == 200 && !found.isStorable && found.length == 9)
        #expect(found.headers["Content-Encoding"] == coding)
        #expect(!found.isJoinable(trusting: .immutable))
    }

    @Test(arguments: [201, 204, 205, 226, 300, 301, 302, 307, 399])
    func passesOtherStatusesOn(status: Int) {
        guard
            case .changed(let found, let body) = HeadJudgementTests.judge(
                status, ["X-A": "b"], known: HeadJudgementTests.known)
        else {
            Issue.record("the response is passed on")
            return
        }
        #expect(found.passedStatus == status && !found.isStorable && found.freshUntil == nil)
        #expect(body == 0..<([204, 205].contains(status) ? 0 : Int64.max))
        #expect(found.headers["X-A"] == "b")
    }

    @Test func takes203ForASuccess() {
        guard case .whole(let found) = HeadJudgementTests.judge(203, ["Content-Length": "100"]) else {
            Issue.record("the whole is taken")
            return
        }
        #expect(found.passedStatus == nil && found.isStorable)
    }
}
