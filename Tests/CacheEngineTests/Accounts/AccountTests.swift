import CacheCore
import CacheTestKit
import Foundation
import NIOCore
import Synchronization
import Testing

@testable import CacheEngine

/// An origin with an OAuth 2.0 account; both servers are on the loopback interface.
@Suite struct AccountTests {
    let bench: Bench
    let secrets: TemporaryDirectory
    let login: LoopbackUpstream
    /// The tokens that the server accepts: `t1`, `t2`, …; all but the last are revoked.
    let tokens = Tokens()

    final class Tokens: Sendable {
        private let state = Mutex((issued: 0, first: 1))
        var issued: Int { state.withLock { $0.issued } }
        func issue() -> String {
            state.withLock { state in
                state.issued += 1; return "t\(state.issued)"
            }
        }
        func revoke() { state.withLock { $0.first = $0.issued + 1 } }
        func accepts(_ field: String?) -> Bool {
            state.withLock { state in
                (state.first...max(state.first, state.issued)).contains { field == "Bearer t\($0)" }
            }
        }
    }

    init() throws {
        bench = try Bench(LoopbackAsset(size: 8 << 20))
        secrets = try TemporaryDirectory()
        login = try LoopbackUpstream()
        let client = Data(#"{"client_id":"larder","client_secret":"client-secret-1"}"#.utf8)
        #expect(FileManager.default.createFile(atPath: secrets.path("client.json"), contents: client))
        login.serve("/token") { [tokens] _ in
            let body = #"{"access_token":"\#(tokens.issue())","token_type":"Bearer","expires_in":3600}"#
            return .response(status: 200, headers: ["Content-Type": "application/json"], body: Array(body.utf8))
        }
        bench.upstream.serve("/a.mp4") { [tokens, asset = bench.asset] request in
            tokens.accepts(request.headers["Authorization"]) ? .asset(asset) : .response(status: 401)
        }
    }

    private func cache(_ change: (inout OriginSettings) -> Void = { _ in }) throws -> TestCache {
        var origin = TestCache.origin(bench.upstream)
        origin.settings.auth.kind = .oauth2
        origin.settings.auth.file = "client.json"
        origin.settings.auth.tokenURL = login.url("/token")
        origin.settings.retries = 0
        origin.settings.readAheadBytes = 256 << 10
        change(&origin.settings)
        return try TestCache(
            directory: bench.directory.path, origins: [origin], credentialsDirectory: secrets.path)
    }

    @Test("200 readers without a token cause one call to the token endpoint")
    func oneCallForAllReaders() async throws {
        try await cache().run { cache in
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in Int64(0)..<200 {
                    let range = number * 1000..<number * 1000 + 500
                    group.addTask {
                        try await cache.body(of: "a.mp4", range).bytes == bench.asset.bytes(range)
                    }
                }
                for try await isEqual in group { #expect(isEqual) }
            }
            #expect(tokens.issued == 1)
            let figures = try await cache.statistics.snapshot().credentials["media"]
            #expect(figures?.kind == "oauth2")
            #expect(figures?.refreshes == 1)
            #expect(figures?.expiresAt != nil)
        }
    }

    @Test("A token that is revoked during a read is replaced once, and the read is complete")
    func aTokenIsRevokedDuringARead() async throws {
        try await cache().run { cache in
            let read = try await cache.reader.read(
                .mounted(origin: "media", path: "a.mp4", key: nil), request: ContentRequest())
            var received: Int64 = 0
            while let buffer = try await read.next() {
                let bytes = Array(buffer.readableBytesView)
                let isEqual = bytes == bench.asset.bytes(received..<received + Int64(bytes.count))
                #expect(isEqual)
                received += Int64(bytes.count)
                // The first window is under way; the next ones need another token.
                if received < 300_000 { tokens.revoke() }
            }
            read.finish(.sent)

            #expect(received == 8 << 20)
            #expect(tokens.issued <= 4)
        }
    }

    @Test("Calls for many links whose token was revoked share one new token")
    func callsForLinksShareOneNewToken() async throws {
        bench.upstream.serve("/api") { [tokens, upstream = bench.upstream] request in
            guard tokens.accepts(request.headers["Authorization"]) else { return .response(status: 401) }
            return .response(status: 200, body: Array(upstream.url("/file").utf8))
        }
        bench.upstream.serve("/file", bench.asset)
        try await cache {
            $0.resolution.url = bench.upstream.url("/api?path={path}")
            $0.resolution.lifetime = .seconds(240)
        }.run { cache in
            _ = try await cache.body(of: "first.mp4", 0..<1000)
            tokens.revoke()
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        try await cache.body(of: "\(number).mp4", 0..<1000).bytes == bench.asset.bytes(0..<1000)
                    }
                }
                for try await isEqual in group { #expect(isEqual) }
            }
            #expect(tokens.issued == 2)
        }
    }

    @Test("A token that stays refused fails the read after one more token")
    func aTokenThatStaysRefused() async throws {
        bench.upstream.serve("/a.mp4") { _ in .response(status: 403) }
        try await cache().run { cache in
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<1000) }
            #expect(error?.code == .upstreamRefused(status: 403))
            #expect(error?.message.contains("t1") == false)
            #expect(tokens.issued <= 2)
        }
    }

    @Test("A token is refreshed before it ends, while the old one is used")
    func aTokenIsRefreshedEarly() async throws {
        let test = try cache()
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            test.wallClock.advance(by: .seconds(3600 - 200))
            _ = try await cache.body(of: "a.mp4", 4_000_000..<4_001_000)
            let isRefreshed = try await eventually { tokens.issued == 2 }
            #expect(isRefreshed)
            #expect(!bench.upstream.requests.map(\.status).contains(401))
        }
    }

    @Test("A failing token endpoint fails reads with its status, without the secret")
    func theTokenEndpointFails() async throws {
        login.serve("/token") { _ in
            .response(status: 401, body: Array(#"{"error":"invalid_client"}"#.utf8))
        }
        try await cache().run { cache in
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<1000) }
            let message = error?.message ?? ""
            #expect(message.contains("invalid_client"))
            #expect(!message.contains("client-secret-1"))
            #expect(bench.upstream.requests.isEmpty)
            let figures = try await cache.statistics.snapshot().credentials["media"]
            #expect(figures?.failures ?? 0 >= 1)
            #expect(figures?.error?.contains("invalid_client") == true)
        }
    }
}
