import CacheCore
import Testing

/// RFC 9111 §4.3.4: selection of the stored response confirmed by a 304.
@Suite struct ConfirmationTests {
    @Test(
        "A 304 for another validator opens an empty generation",
        arguments: [
            ["ETag": "\"v2\""], ["ETag": "W/\"v2\"", "Last-Modified": ResponseVerdictTests.old],
            ["Last-Modified": "Mon, 07 Nov 1994 08:49:37 GMT", "Date": ResponseVerdictTests.received],
        ] as [HeaderList])
    func nothingIsKnownBehindAConfirmationOfAnother(headers: HeaderList) {
        guard
            case .changed(let generation, _) = ResponseVerdictTests.judge(
                304, headers, known: ResponseVerdictTests.known)
        else {
            Issue.record("The verdict is not `.changed`.")
            return
        }
        #expect(generation == Generation(number: 5, receivedAt: ResponseVerdictTests.now))
    }

    @Test(
        "A confirmation can omit validators",
        arguments: [
            ["ETag": "W/\"v1\""],
            [
                "ETag": "\"v1\"", "Last-Modified": "Mon, 07 Nov 1994 08:49:37 GMT",
                "Date": ResponseVerdictTests.received,
            ],
            ["Last-Modified": ResponseVerdictTests.old, "Date": ResponseVerdictTests.received],
            ["Last-Modified": ResponseVerdictTests.received, "Date": ResponseVerdictTests.received],
        ] as [HeaderList])
    func aConfirmationMayLeaveValidatorsOut(headers: HeaderList) {
        guard case .unchanged = ResponseVerdictTests.judge(304, headers, known: ResponseVerdictTests.known) else {
            Issue.record("The verdict is not `.unchanged`.")
            return
        }
    }
}
