import CacheCore
import Testing

/// RFC 9111 §4.3.4: which stored response a 304 is about.
@Suite struct ConfirmationTests {
    @Test(
        arguments: [
            ["ETag": "\"v2\""], ["ETag": "W/\"v2\"", "Last-Modified": HeadJudgementTests.old],
            ["Last-Modified": "Mon, 07 Nov 1994 08:49:37 GMT", "Date": HeadJudgementTests.received],
        ] as [HeaderList])
    func nothingIsKnownBehindAConfirmationOfAnother(headers: HeaderList) {
        guard case .changed(let generation, _) = HeadJudgementTests.judge(304, headers, known: HeadJudgementTests.known)
        else {
            Issue.record("the generation is over")
            return
        }
        #expect(generation == Generation(number: 5, receivedAt: HeadJudgementTests.now))
    }

    @Test(
        arguments: [
            ["ETag": "W/\"v1\""],
            ["ETag": "\"v1\"", "Last-Modified": "Mon, 07 Nov 1994 08:49:37 GMT", "Date": HeadJudgementTests.received],
            ["Last-Modified": HeadJudgementTests.old, "Date": HeadJudgementTests.received],
            ["Last-Modified": HeadJudgementTests.received, "Date": HeadJudgementTests.received],
        ] as [HeaderList])
    func aConfirmationMayLeaveValidatorsOut(headers: HeaderList) {
        guard case .unchanged = HeadJudgementTests.judge(304, headers, known: HeadJudgementTests.known) else {
            Issue.record("the generation is confirmed")
            return
        }
    }
}
