import CacheAPI
import CacheCore
import Testing

@testable import LarderServer

/// The client over real sockets, with one canned response each.
@Suite(.timeLimit(.minutes(1))) struct ServiceClientTests {
    private static let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n"

    private func client(of server: AnsweringOnce, token: String? = nil) throws -> ServiceClient {
        try ServiceClient(
            to: ServiceAddress("http://127.0.0.1:\(server.port)/base/"), token: token.map { MaskedSecret($0) },
            authorities: nil)
    }

    private func failure(of body: () throws -> Void) -> ClientError? {
        #expect(throws: ClientError.self) { try body() }
    }

    @Test("A document is sent and received as it is, with the token")
    func aDocumentIsReceived() throws {
        let server = try AnsweringOnce(with: Self.head + "Content-Type: application/json\r\n\r\n{ \"b\" : 1.0 }\n")
        let request = ServiceRequest(.post, "/v1/jobs", body: ["a": 1])

        let document: APIDocument<[String: Int]> = try client(of: server, token: "secret").document(request)

        #expect(document.text == #"{ "b" : 1.0 }"# && document.value == ["b": 1])
        let question = server.question()
        #expect(question.hasPrefix("POST /base/v1/jobs HTTP/1.1\r\n") && question.hasSuffix("\r\n\r\n{\"a\":1}"))
        #expect(question.contains("Authorization: Bearer secret\r\n") && question.contains("User-Agent: larder/"))
    }

    @Test(
        "A response of another server is recognised",
        arguments: ["Content-Type: text/html\r\n\r\n<html>", "\r\n", "Content-Length: 2\r\n\r\n{]"])
    func anotherServerIsRecognised(_ rest: String) throws {
        let server = try AnsweringOnce(with: Self.head + rest)

        let error = failure { let _: APIDocument<JSON> = try client(of: server).document(ServiceRequest(.get, "/")) }

        #expect(error?.kind == .foreign)
    }

    @Test(
        "A response that is cut off is an error",
        arguments: ["", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", "SSH-2.0-x\r\n"])
    func aCutResponseIsAnError(_ answer: String) throws {
        let server = try AnsweringOnce(with: answer)

        let error = failure { let _: APIDocument<JSON> = try client(of: server).document(ServiceRequest(.get, "/")) }

        #expect(error?.kind == .unreachable)
    }

    @Test("Unknown members are ignored, and a missing one is an error")
    func unknownMembersAreIgnored() throws {
        let text = #"{"url":"/o/a","expiresAt":"2026-11-21T08:00:00Z","kid":"k","later":{"x":[1]}}"#
        let server = try AnsweringOnce(with: Self.head + "\r\n" + text)

        let signed: APIDocument<SignedURLDocument> = try client(of: server).document(ServiceRequest(.get, "/"))

        #expect(signed.value.url == "/o/a" && signed.text == text)
        let other = try AnsweringOnce(with: Self.head + "\r\n" + #"{"expiresAt":"2026-11-21T08:00:00Z","kid":"k"}"#)
        let error = failure {
            let _: APIDocument<SignedURLDocument> = try client(of: other).document(ServiceRequest(.get, "/"))
        }
        #expect(error?.kind == .foreign)
    }

    @Test("A redirect is not followed")
    func aRedirectIsNotFollowed() throws {
        let server = try AnsweringOnce(
            with: "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")

        let error = failure {
            let _: APIDocument<JSON> = try client(of: server, token: "secret").document(ServiceRequest(.get, "/"))
        }

        #expect(error?.kind == .foreign)
    }

    @Test("Events arrive until the command stops the stream")
    func eventsArriveUntilTheStop() throws {
        let events = "data: 1\n\nid: 5\ndata: 2\n\ndata: 3\n\n"
        let server = try AnsweringOnce(with: Self.head + "Content-Type: text/event-stream\r\n\r\n" + events)
        var received: [String] = []

        try client(of: server).follow(.events("/v1/events"), onLoss: { _ in Issue.record("lost") }) { event in
            received.append(event.data)
            return event.id == "5" ? .stop : .proceed
        }

        #expect(received == ["1", "2"])
        #expect(server.question().contains("Accept: text/event-stream\r\n"))
    }

    @Test("A stream that is lost is requested again, until the service is away for too long")
    func aLostStreamIsRequestedAgain() throws {
        let server = try AnsweringOnce(with: Self.head + "Content-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        var losses: [ClientError] = []

        let error = failure {
            try client(of: server).follow(
                .events("/v1/events"), patience: .milliseconds(500), onLoss: { losses.append($0) }
            ) { _ in .proceed }
        }

        #expect(losses.count == 1 && losses[0].message.contains("ended the stream"))
        #expect(error?.kind == .unreachable)
    }

    @Test("A document in place of a stream is an error")
    func aDocumentIsNoStream() throws {
        let server = try AnsweringOnce(with: Self.head + "Content-Type: application/json\r\n\r\n{}")

        let error = failure {
            try client(of: server).follow(.events("/v1/events"), onLoss: { _ in }) { _ in .proceed }
        }

        #expect(error?.kind == .foreign)
    }

    @Test("A status without content ends a stream")
    func noContentEndsAStream() throws {
        let server = try AnsweringOnce(with: "HTTP/1.1 204 No Content\r\n\r\n")

        try client(of: server).follow(.events("/v1/events"), onLoss: { _ in Issue.record("lost") }) { _ in .proceed }
    }

    @Test("A closed port is reported with its URL")
    func aClosedPortIsReported() throws {
        let client = try ServiceClient(to: ServiceAddress("http://127.0.0.1:1"), token: nil, authorities: nil)

        let error = failure { let _: APIDocument<JSON> = try client.document(ServiceRequest(.get, "/v1/stats")) }

        #expect(error?.message == "No service listens on http://127.0.0.1:1: the connection was refused.")
    }
}
