import CacheAPI
import CacheCore
import ReaderAccess
import Testing

@Suite struct ReaderUsageTests {
    @Test("CSV has a header, a line for each token, and quotation marks where a token needs them")
    func commaSeparatedValues() {
        let figures = ReaderFigures()
        figures.add(to: "player", requests: 3, bytes: 3_000_000_000, bytesFromCache: 2_000_000_000, errors: 1)
        figures.add(to: "jwt:a,\"b\"", requests: 1, bytes: 5, bytesFromCache: 0)
        figures.add(to: "=1+1", requests: 1, bytes: 5, bytesFromCache: 0)
        let lines = figures.snapshot().csv(pricePerGigabyte: 0.05).split(separator: "\r\n").map(String.init)

        #expect(
            lines == [
                "token,requests,bytes,bytesFromCache,savedCost,errors", "'=1+1,1,5,0,0.0,0",
                "\"jwt:a,\"\"b\"\"\",1,5,0,0.0,0",
                "player,3,3000000000,2000000000,0.1,1",
            ])
        #expect(figures.snapshot().csv(pricePerGigabyte: nil).hasSuffix("player,3,3000000000,2000000000,,1\r\n"))
    }
}
