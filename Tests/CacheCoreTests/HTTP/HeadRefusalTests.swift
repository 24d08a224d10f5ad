import CacheCore
import Testing

/// Answers that contradict themselves or what was asked.
@Suite struct HeadRefusalTests {
    private typealias Cases = HeadJudgementTests

    @Test(arguments: ["gzip", "gzip, chunked", "chunked, gzip", "chunked, chunked", "x"])
    func refusesTransferCodingsThatWereNotAskedFor(coding: String) {
        Cases.expectRefusal(Cases.judge(200, ["Transfer-Encoding": coding]), .upstreamUnusable())
    }

    private static let contradictions: [(HeaderList, UpstreamRequest.Window)] = [
        ([:], .closed(0..<100)), (["Content-Range": "bytes */70"], .closed(0..<100)),
        (["Content-Range": "bytes */70"], .closed(69..<100)), (["Content-Range": "bytes */70"], .suffix(5)),
    ]

    @Test(arguments: contradictions)
    func refusesAnUnsatisfiedRangeThatCouldHaveBeenAnswered(headers: HeaderList, window: UpstreamRequest.Window) {
        Cases.expectRefusal(Cases.judge(416, headers, window), .upstreamUnusable(asRange: true))
    }

    @Test func nothingIsGuessedOfAnEmptyAssetsLifetime() {
        let headers: HeaderList = ["Content-Range": "bytes */0", "Last-Modified": "Sun, 06 Nov 1983 08:49:37 GMT"]
        let expectation = WindowExpectation(
            window: .closed(0..<10), known: nil, now: Cases.now, freshness: .respect, path: "a.mp3")
        let generation = HeadJudgement.emptyAsset(UpstreamHead(status: 416, headers: headers), expecting: expectation)
        #expect(generation.freshUntil == nil)
    }
}
