import Testing

@testable import LarderServer

@Suite struct HealthQuestionTests {
    @Test(arguments: [
        ("http://127.0.0.1:8080/health/live", "127.0.0.1:8080", "/health/live"),
        ("http://localhost", "localhost:80", "/health/ready"), ("http://[::1]:81/", "[::1]:81", "/"),
    ])
    func urlsAreTakenApart(url: String, address: String, path: String) throws {
        let question = try #require(HealthQuestion(url: url))

        #expect(question.address.description == address)
        #expect(question.path == path)
    }

    @Test(arguments: ["https://localhost/", "localhost", "http://", "http://a b/", "http://a/\r\nX: y", "http://u@h/"])
    func otherURLsAreRefused(url: String) {
        #expect(HealthQuestion(url: url) == nil)
    }

    @Test func theStatusIsReadFromTheFirstLine() throws {
        #expect(try HealthQuestion.status(in: "HTTP/1.1 503 Service Unavailable") == 503)
        #expect(try HealthQuestion.status(in: "HTTP/1.0 200") == 200)
    }

    @Test(arguments: [
        ("", "gave no answer"), ("SSH-2.0-x", "does not speak HTTP"), ("HTTP/1.1 abc", "does not speak HTTP"),
    ])
    func otherLinesAreRefused(line: String, reason: String) {
        let refusal = #expect(throws: HealthQuestion.Refusal.self) { try HealthQuestion.status(in: line) }

        #expect(refusal?.reason == reason)
    }

    @Test func aPortNobodyListensOnIsAnAnswerToo() throws {
        let question = try #require(HealthQuestion(url: "http://127.0.0.1:1/health/ready"))

        let refusal = #expect(throws: HealthQuestion.Refusal.self) { try question.ask(within: .seconds(1)) }

        #expect(refusal?.reason == "takes no connection")
    }

    @Test func aListenerOnEveryInterfaceIsAskedOnLoopback() {
        #expect(ListenAddress("0.0.0.0:80")?.dialable.description == "127.0.0.1:80")
        #expect(ListenAddress("[::]:80")?.dialable.description == "[::1]:80")
        #expect(ListenAddress("10.0.0.1:80")?.dialable.description == "10.0.0.1:80")
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200), ("HTTP/1.1 503 Service Unavailable\r\n\r\n", 503),
    ])
    func aServiceIsAskedOverASocket(answer: String, status: Int) throws {
        let listener = try AnsweringOnce(with: answer)

        let question = try #require(HealthQuestion(url: "http://127.0.0.1:\(listener.port)/health/ready"))

        #expect(try question.ask(within: .seconds(5)) == status)
        #expect(listener.question().hasPrefix("GET /health/ready HTTP/1.1\r\nHost: 127.0.0.1:\(listener.port)\r\n"))
    }

    @Test func aServiceThatHangsUpGivesNoAnswer() throws {
        let listener = try AnsweringOnce(with: "")

        let question = try #require(HealthQuestion(url: "http://127.0.0.1:\(listener.port)/health/ready"))
        let refusal = #expect(throws: HealthQuestion.Refusal.self) { try question.ask(within: .seconds(5)) }

        #expect(refusal?.reason == "gave no answer")
    }
}
