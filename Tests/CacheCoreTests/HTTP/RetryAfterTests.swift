import CacheCore
import Testing

@Suite struct RetryAfterTests {
    /// Sun, 06 Nov 1994 08:49:37 GMT
    static let now = Timestamp(seconds: 784_111_777)

    static func wait(_ text: String) -> Duration? { RetryAfter.wait(in: ["Retry-After": text], now: now) }

    @Test(
        "Accepts seconds and dates",
        arguments: [
            ("0", Duration.zero), ("120", .seconds(120)), (" 7 ", .seconds(7)), ("007", .seconds(7)),
            ("99999999999999999999999", .seconds(1 << 31)), ("Sun, 06 Nov 1994 08:50:07 GMT", .seconds(30)),
            ("Sunday, 06-Nov-94 08:49:38 GMT", .seconds(1)), ("Sun Nov  6 08:49:39 1994", .seconds(2)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", .zero), ("Fri, 31 Dec 9999 23:59:59 GMT", .seconds(1 << 31)),
        ])
    func secondsAndDatesAreWaits(_ text: String, _ wait: Duration) {
        #expect(Self.wait(text) == wait)
    }

    @Test(
        "Ignores malformed values",
        arguments: ["", "-1", "+1", "1.5", "soon", "1, 2", "5 s", "Sun, 31 Feb 1994 08:00:00 GMT", "0x10"])
    func whatIsNeitherIsNoWait(_ text: String) {
        #expect(Self.wait(text) == nil)
    }

    @Test("The first of several fields counts")
    func ofSeveralFieldsTheFirstCounts() {
        let headers: HeaderList = ["retry-after": "3", "Retry-After": "9"]

        #expect(RetryAfter.wait(in: headers, now: Self.now) == .seconds(3))
        #expect(RetryAfter.wait(in: [:], now: Self.now) == nil)
    }

    @Test("A refusal contains its wait")
    func aRefusalTellsItsWait() {
        let head = UpstreamHead(status: 503, headers: ["Retry-After": "12"])
        let expectation = WindowExpectation(
            window: .closed(0..<10), known: nil, now: Self.now, freshness: .respect, path: "a.mp4")

        guard case .refused(let error) = ResponseVerdict.judge(head, expecting: expectation) else {
            Issue.record("The 503 was not refused.")
            return
        }
        #expect(error.code == .upstreamRefused(status: 503, retryAfter: .seconds(12)))
    }
}
