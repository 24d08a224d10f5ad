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

    @Test(
        "Other responses than of HTTP/1.1 are rejected",
        arguments: [
            ("", "sent no response"), ("SSH-2.0-x\r\n", "sent a response that is not HTTP/1.1"),
            ("HTTP/1.1 abc\r\n\r\n", "sent a response that is not HTTP/1.1"),
        ])
    func otherResponsesAreRefused(answer: String, reason: String) throws {
        let listener = try AnsweringOnce(with: answer)
        let question = try #require(HealthProbe(url: "http://127.0.0.1:\(listener.port)/health/ready"))

        let refusal = #expect(throws: HealthProbe.Refusal.self) { try question.ask(within: .seconds(5)) }

        #expect(refusal?.reason == reason)
    }

    @Test("A listener without TLS is not ready if the settings have a certificate")
    func missingTLS() throws {
        let listener = try AnsweringOnce(with: "HTTP/1.1 200 OK\r\n\r\n")
        var listen = ListenSettings()
        listen.address = .host("127.0.0.1", port: listener.port)
        listen.certificateFile = "certificate.pem"

        let refusal = #expect(throws: HealthProbe.Refusal.self) {
            try HealthProbe(listen, path: "/health/ready").ask(within: .seconds(5))
        }

        #expect(refusal?.reason == "completed no TLS handshake")
    }

    @Test("A listener that requires a PROXY header is asked for a connection only")
    func proxiedListener() throws {
        let listener = try AnsweringOnce(with: "")
        var listen = ListenSettings()
        listen.address = .host("127.0.0.1", port: listener.port)
        listen.certificateFile = "certificate.pem"
        listen.proxyProtocol = .required

        #expect(try HealthProbe(listen, path: "/health/ready").ask(within: .seconds(5)) == 200)
        #expect(listener.question() == "")
    }

    @Test(
        "Client certificates that are required limit the probe to the TLS handshake",
        arguments: [(ClientAuthentication.required, HealthProbe.Extent.connection), (.optional, .request)])
    func clientCertificates(authentication: ClientAuthentication, extent: HealthProbe.Extent) {
        var listen = ListenSettings()
        (listen.certificateFile, listen.clientCAFile) = ("certificate.pem", "clients.pem")
        listen.clientAuthentication = authentication

        let probe = HealthProbe(listen, path: "/health/ready")

        #expect(probe.extent == extent && probe.isEncrypted)
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
}
