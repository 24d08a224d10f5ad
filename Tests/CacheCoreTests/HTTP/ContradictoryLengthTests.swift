import CacheCore
import Testing

/// Responses with the same strong validator and different lengths.
@Suite struct ContradictoryLengthTests {
    private static let known = ResponseVerdictTests.known
    private static let now = ResponseVerdictTests.now

    private func judge(_ headers: HeaderList, known: Generation? = nil, stated: StatedLength? = nil) -> ResponseVerdict
    {
        ResponseVerdict.judge(
            UpstreamHead(status: 200, headers: headers),
            expecting: WindowExpectation(
                window: .whole, known: known, now: Self.now, freshness: .respect, stated: stated, path: "a.mp4"))
    }

    private var stated: StatedLength? {
        let headers: HeaderList = ["Content-Range": "bytes 0-99/1000", "ETag": "\"v1\"", "Content-Length": "0"]
        return StatedLength(UpstreamHead(status: 206, headers: headers), now: Self.now)
    }

    @Test("A shorter 200 than the known generation is passed on", arguments: ["0", "999"])
    func shorterThanKnown(_ length: String) {
        guard case .changed(let found, _) = judge(["Content-Length": length, "ETag": "\"v1\""], known: Self.known)
        else {
            Issue.record("The verdict is not `.changed`.")
            return
        }
        #expect(found.passedStatus == 200 && !found.isStorable && found.freshUntil == nil)
    }

    @Test(
        "A longer 200, or one with another validator, opens the next generation",
        arguments: [
            ["Content-Length": "1001", "ETag": "\"v1\""] as HeaderList, ["Content-Length": "0", "ETag": "\"v2\""],
        ])
    func another(_ headers: HeaderList) {
        guard case .changed(let found, _) = judge(headers, known: Self.known) else {
            Issue.record("The verdict is not `.changed`.")
            return
        }
        #expect(found.passedStatus == nil && found.isStorable)
    }

    @Test(
        "A 200 that is shorter than an unusable 206 has stated is passed on",
        arguments: [("0", true), ("999", true), (nil, true), ("1000", false), ("1001", false)])
    func shorterThanStated(_ length: String?, _ isPassed: Bool) throws {
        var headers: HeaderList = ["ETag": "\"v1\""]
        if let length { headers.append("Content-Length", length) }
        guard case .whole(let found) = judge(headers, stated: stated) else {
            Issue.record("The verdict is not `.whole`.")
            return
        }
        #expect((found.passedStatus == 200) == isPassed && found.isStorable == !isPassed)
    }

    @Test("Without a strong validator no length is stated")
    func weak() {
        let headers: HeaderList = ["Content-Range": "bytes 0-99/1000", "ETag": "W/\"v1\""]

        #expect(StatedLength(UpstreamHead(status: 206, headers: headers), now: Self.now) == nil)
        #expect(stated?.length == 1000)
    }
}
