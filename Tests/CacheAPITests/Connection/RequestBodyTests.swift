import CacheCore
import CacheTestKit
import ReaderAccess
import Testing

@testable import CacheAPI

/// The limit on request bodies in memory.
@Suite struct RequestBodyTests {
    private static let total = 4 << 20
    private static let head =
        "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

    /// A connection that has sent `sent` of `length` bytes of a body.
    private static func upload(
        _ service: TestService, _ token: String, length: Int, sent: Int
    ) async throws -> RawConnection {
        let connection = try await RawConnection(port: service.port)
        try await connection.send(
            head + "Authorization: Bearer \(token)\r\nContent-Length: \(length)\r\n\r\n"
                + String(repeating: " ", count: sent))
        return connection
    }

    @Test("Above its share a token gets 503, other tokens are served, and returned bytes are free again")
    func oneTokenHoldsAQuarter() async throws {
        let access = try TestAccess.rules([("one", #""scope":"write""#), ("two", #""scope":"write""#)])
        try await TestService.run(access: access, limits: .init(requestBodies: Self.total)) { (service) async throws in
            let half = Self.total / 8
            let waiting = try await Self.upload(service, "one", length: half + 1, sent: half)
            let isRefused = try await eventually {
                let second = try await Self.upload(service, "one", length: 2 * half, sent: 2 * half)
                guard let response = try await second.response(), response.status == 503 else { return false }
                #expect(response.headers["Retry-After"] == "1" && response.headers["Connection"] == "close")
                #expect(try response.json()["code"] == "overloaded")
                #expect(await second.rest().isEmpty)
                return true
            }
            #expect(isRefused)
            // Served: the body has no items.
            let other = try await Self.upload(service, "two", length: 2 * half, sent: 2 * half)
            #expect(try await other.response()?.status == 400)
            try await waiting.send(" ")
            #expect(try await waiting.response()?.status == 400)
            let isFree = try await eventually {
                try await Self.upload(service, "one", length: 2 * half, sent: 2 * half).response()?.status == 400
            }
            #expect(isFree)
        }
    }

    @Test("A client that leaves within its body returns the bytes at once", .timeLimit(.minutes(1)))
    func leavingReturnsTheBytes() async throws {
        let access = try TestAccess.rules([("one", #""scope":"write""#)])
        let limits = APISettings.Limits(requestBodies: Self.total, halfClosedTimeout: .seconds(3600))
        try await TestService.run(access: access, limits: limits) { (service) async throws in
            let size = Self.total / 4
            let leaving = try await Self.upload(service, "one", length: size, sent: size - 1)
            // Refused as soon as the service has the bytes of the first body.
            let isRefused = try await eventually {
                try await Self.upload(service, "one", length: size, sent: size).response()?.status == 503
            }
            #expect(isRefused)
            try await leaving.hangUp()
            let isFree = try await eventually {
                try await Self.upload(service, "one", length: size, sent: size).response()?.status == 400
            }
            #expect(isFree)
        }
    }

    @Test("A body above a quarter of the total gets 413")
    func aBodyIsAtMostAQuarter() async throws {
        try await TestService.run(limits: .init(requestBodies: Self.total)) { (service) async throws in
            let connection = try await RawConnection(port: service.port)
            try await connection.send(Self.head + "Content-Length: \(Self.total / 4 + 1)\r\n\r\n")
            #expect(try await connection.response()?.status == 413)
        }
    }
}
