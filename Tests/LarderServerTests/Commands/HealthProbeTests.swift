import Testing

@testable import LarderServer

@Suite struct HealthProbeTests {
    @Test(
        "URLs are parsed",
        arguments: [
            ("http://127.0.0.1:8080/health/live", "127.0.0.1:8080", "/health/live"),
            ("http://localhost", "localhost:80", "/health/ready"),
            ("unix:/run/larder.sock", "unix:/run/larder.sock", "/health/ready"), ("http://[::1]:81/", "[::1]:81", "/"),
        ])
    func urlsAreTakenApart(url: String, address: String, path: String) throws {
        let question = try #require(HealthProbe(url: url))

        #expect(question.address.description == address)
        #expect(question.path == path)
    }

    @Test(
        "Unsupported URLs are rejected",
        arguments: [
            "https://localhost/", "localhost", "http://", "http://a b/", "http://a/\r\nX: y", "http://u@h/",
            "unix:larder.sock",
            "unix:", "unix:/", "http://unix:/a",
        ])
    func otherURLsAreRefused(url: String) {
        #expect(HealthProbe(url: url) == nil)
    }

    @Test("The status is parsed from the first line")
    func theStatusIsReadFromTheFirstLine() throws {
        #expect(try HealthProbe.status(in: "HTTP/1.1 503 Service Unavailable") == 503)
        #expect(try HealthProbe.status(in: "HTTP/1.0 200") == 200)
    }

    @Test(
        "Malformed status lines are rejected",
        arguments: [
            ("", "sent no response"), ("SSH-2.0-x", "sent a response that is not HTTP/1.1"),
            ("HTTP/1.1 abc", "sent a response that is not HTTP/1.1"),
        ])
    func otherLinesAreRefused(line: String, reason: String) {
        let refusal = #expect(throws: HealthProbe.Refusal.self) { try HealthProbe.status(in: line) }

        #expect(refusal?.reason == reason)
    }

    @Test("A closed port is reported as refusing connections")
    func aPortNobodyListensOnIsAnAnswerToo() throws {
        let question = try #require(HealthProbe(url: "http://127.0.0.1:1/health/ready"))

        let refusal = #expect(throws: HealthProbe.Refusal.self) { try question.ask(within: .seconds(1)) }

        #expect(refusal?.reason == "accepts no connection")
    }

    @Test("A Unix socket is an absolute path that fits into an address")
    func unixSockets() {
        let longest = "/" + String(repeating: "a", count: 106)
        #expect(ListenAddress("unix:" + longest) == .unix(path: longest))
        #expect(ListenAddress("unix:\(longest)a") == nil)
        #expect(ListenAddress("unix:/run/a\0b") == nil)
        #expect(ListenAddress("unix:/run/larder.sock")?.isLoopback == true)
        #expect(ListenAddress("unix:/run/larder.sock")?.dialable.description == "unix:/run/larder.sock")
    }

    @Test("localhost has a socket for each family")
    func localhostHasTwoSockets() {
        #expect(ListenAddress("localhost:80")?.socketCount == 2)
        #expect(ListenAddress("127.0.0.1:80")?.socketCount == 1)
        #expect(ListenAddress("unix:/localhost")?.socketCount == 1)
    }

    @Test("A wildcard listener is probed on loopback")
    func aListenerOnEveryInterfaceIsAskedOnLoopback() {
        #expect(ListenAddress("0.0.0.0:80")?.dialable.description == "127.0.0.1:80")
        #expect(ListenAddress("[::]:80")?.dialable.description == "[::1]:80")
        #expect(ListenAddress("10.0.0.1:80")?.dialable.description == "10.0.0.1:80")
    }

    @Test(
        "A service is probed over a socket",
        arguments: [
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200), ("HTTP/1.1 503 Service Unavailable\r\n\r\n", 503),
        ])
    func aServiceIsAskedOverASocket(answer: String, status: Int) throws {
        let listener = try AnsweringOnce(with: answer)

        let question = try #require(HealthProbe(url: "http://127.0.0.1:\(listener.port)/health/ready"))

        #expect(try question.ask(within: .seconds(5)) == status)
        #expect(listener.question().hasPrefix("GET /health/ready HTTP/1.1\r\nHost: 127.0.0.1:\(listener.port)\r\n"))
    }

    @Test("A service that closes the connection gave no answer")
    func aServiceThatHangsUpGivesNoAnswer() throws {
        let listener = try AnsweringOnce(with: "")

        let question = try #require(HealthProbe(url: "http://127.0.0.1:\(listener.port)/health/ready"))
        let refusal = #expect(throws: HealthProbe.Refusal.self) { try question.ask(within: .seconds(5)) }

        #expect(refusal?.reason == "sent no response")
    }
}
