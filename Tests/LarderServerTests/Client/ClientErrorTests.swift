import CCurl
import CacheCore
import Glibc
import Testing

@testable import CacheAPI
@testable import LarderServer

@Suite struct ClientErrorTests {
    private static let url = "http://127.0.0.1:8080"

    /// The problem document of the service.
    private func problem(_ error: CacheError, requestID: String = "r") -> [UInt8] {
        Problem(error, instance: "/v1/jobs", requestID: requestID).document.jsonBytes
    }

    @Test("A problem document becomes its detail, its code and a remedy")
    func aProblemIsReported() {
        let body = problem(.invalid("items[0].origin", "The origin is unknown."))
        let error = ClientError(status: 422, body: body, from: Self.url)

        #expect(
            error.text == """
                larder: The origin is unknown. (code invalidField, field items[0].origin)
                remedy: Correct the value that `field` names.

                """)
        #expect(!error.isTemporary)
    }

    @Test("The request identifier leads to the log after an internal error")
    func anInternalErrorNamesTheRequest() {
        let body = problem(CacheError(.internal, "An internal error occurred."), requestID: "abc")

        #expect(ClientError(status: 500, body: body, from: Self.url).text.contains("The request is abc."))
    }

    @Test("A response without a problem document is of another server", arguments: ["", "<html>", "{}", "\u{1B}[2J"])
    func anotherServerIsReported(_ body: String) {
        let error = ClientError(status: 404, body: Array(body.utf8), from: Self.url)

        #expect(error.kind == .foreign && error.text.contains("another server may listen there"))
        #expect(!error.text.contains("\u{1B}"))
    }

    @Test("An overloaded service and a lost connection are temporary", arguments: [(503, true), (404, false)])
    func temporaryErrorsAreKnown(_ status: Int, _ isTemporary: Bool) {
        let body = problem(CacheError(.shuttingDown, "The service is shutting down."))

        #expect(ClientError(status: status, body: body, from: Self.url).isTemporary == isTemporary)
    }

    @Test("A refused connection names the URL and the start of the service")
    func aRefusedConnectionIsReported() {
        let error = CurlConnection.error(
            of: .init(code: CURLE_COULDNT_CONNECT, systemError: ECONNREFUSED), at: Self.url)

        #expect(error.message == "No service listens on http://127.0.0.1:8080: the connection was refused.")
        #expect(error.remedy?.contains("`larder serve`") ?? false)
        #expect(error.isTemporary)
    }

    @Test(
        "Errors of the transport have a message and a remedy",
        arguments: [
            (CURLE_PEER_FAILED_VERIFICATION, "--ca-file"), (CURLE_OPERATION_TIMEDOUT, "in time"),
            (CURLE_COULDNT_RESOLVE_HOST, "could not be resolved"), (CURLE_SSL_CONNECT_ERROR, "TLS"),
            (CURLE_WEIRD_SERVER_REPLY, "HTTP/1.1"), (CURLE_RECV_ERROR, "closed the connection"),
            (CURLE_SSL_CACERT_BADFILE, "--ca-file"), (CURLE_TOO_MANY_REDIRECTS, "failed"),
        ])
    func transportErrorsAreReported(_ code: CURLcode, _ part: String) {
        let error = CurlConnection.error(of: .init(code: code), at: Self.url)

        #expect(error.kind == .unreachable && error.text.contains(part), "\(error.text)")
    }
}
