import CacheCore
import Testing

/// Responses that contradict themselves or the request.
@Suite struct HeadRefusalTests {
    private typealias Cases = ResponseVerdictTests

    @Test(
        "Refuses transfer codings that were not requested",
        arguments: ["gzip", "gzip, chunked", "chunked, gzip", "chunked, chunked", "x"])
    func refusesTransferCodingsThatWereNotAskedFor(coding: String) {
        Cases.expectRefusal(Cases.judge(200, ["Transfer-Encoding": coding]), .upstreamUnusable())
    }

    private static let contradictions: [(HeaderList, UpstreamRequest.Window)] = [
        ([:], .closed(0..<100)), (["Content-Range": "bytes */70"], .closed(0..<100)),
        (["Content-Range": "bytes */70"], .closed(69..<100)), (["Content-Range": "bytes */70"], .suffix(5)),
    ]

    @Test("Refuses a 416 for a satisfiable range", arguments: contradictions)
    func refusesAnUnsatisfiedRangeThatCouldHaveBeenAnswered(headers: HeaderList, window: UpstreamRequest.Window) {
        Cases.expectRefusal(Cases.judge(416, headers, window), .upstreamUnusable(asRange: true))
    }

    @Test("An empty asset gets no heuristic lifetime")
    func nothingIsGuessedOfAnEmptyAssetsLifetime() {
        let headers: HeaderList = ["Content-Range": "bytes */0", "Last-Modified": "Sun, 06 Nov 1983 08:49:37 GMT"]
        let expectation = WindowExpectation(
            window: .closed(0..<10), known: nil, now: Cases.now, freshness: .respect, path: "a.mp3")
        let generation = ResponseVerdict.emptyAsset(UpstreamHead(status: 416, headers: headers), expecting: expectation)
        #expect(generation.freshUntil == nil)
    }
}
