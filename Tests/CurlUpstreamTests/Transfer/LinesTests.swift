import CacheCore
import CacheTestKit
import Testing

@testable import CurlUpstream

@Suite struct LinesTests {
    private let pool = CurlWorkerPool.forTest()

    /// The lines that arrived, the status and the error of a transfer that sends `parts` with the status.
    private func result(
        _ parts: [String], status: Int = 200, refusing refused: String? = nil
    ) async throws -> (lines: [String], status: Int?, error: CacheError.Code?) {
        let (upstream, lines) = (ManualUpstream(parser: pool), AsyncCondition([String]()))
        async let outcome = upstream.lines(of: UpstreamRequest(url: "http://127.0.0.1/")) { status in
            CacheError(.notCached, "Status \(status).")
        } body: { line throws(CacheError) in
            let text = String(decoding: line, as: UTF8.self)
            if text == refused { throw CacheError(.malformedMedia, "This line is refused.") }
            lines.change { $0.append(text) }
        }
        let transfer = await upstream.transfer(0)
        transfer.leaveQueue()
        var code: CacheError.Code? = .notCached
        if transfer.answer(status, HeaderList()) {
            code = nil
            do {
                for part in parts { try transfer.bring(Array(part.utf8)) }
            } catch let error as CacheError {
                code = error.code
            }
        }
        transfer.end(code)
        let (found, end) = await outcome
        return (lines.state, found, end.error?.code)
    }

    @Test("Lines are joined over the parts in which they arrive")
    func joinedLines() async throws {
        let result = try await result(["one\ntw", "o", "\n\nthree\nfour\nrest", " without an end"])

        #expect(result.lines == ["one", "two", "three", "four"])
        #expect(result.status == 200)
        #expect(result.error == nil)
    }

    @Test("Nothing is read from a response with another status")
    func refusedStatus() async throws {
        let result = try await result(["one\n"], status: 503)

        #expect(result.lines == [])
        #expect(result.status == 503)
        #expect(result.error == .notCached)
    }

    @Test("An error for a line ends the transfer")
    func refusedLine() async throws {
        let result = try await result(["one\ntwo\n", "three\n"], refusing: "two")

        #expect(result.lines == ["one"])
        #expect(result.error == .malformedMedia)
    }
}
