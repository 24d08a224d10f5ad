import CacheCore
import CacheTestKit
import Synchronization
import Testing

@testable import CacheEngine

@Suite struct LinkTests {
    let bench: Bench
    /// The download host.
    let host: LoopbackUpstream
    /// The number of links that the API has returned.
    let calls = Counter()

    final class Counter: Sendable {
        private let count = Mutex(0)
        var value: Int { count.withLock { $0 } }
        func next() -> Int {
            count.withLock { count in
                count += 1
                return count
            }
        }
    }

    init() throws {
        bench = try Bench()
        host = try LoopbackUpstream()
    }

    private func cache(_ change: (inout OriginSettings) -> Void = { _ in }) throws -> TestCache {
        var origin = TestCache.origin(bench.upstream)
        origin.settings.headers = ["Authorization": "OAuth secret"]
        origin.settings.retries = 0
        origin.settings.resolution.url = bench.upstream.url("/api/download") + "?path={path}"
        origin.settings.resolution.pointer = "/href"
        origin.settings.resolution.lifetime = .seconds(240)
        origin.settings.resolution.hosts = ["127.0.0.1:\(host.port)"]
        change(&origin.settings)
        return try TestCache(directory: bench.directory.path, origins: [origin])
    }

    /// The API returns links to `/1`, `/2`, …; the host serves only those for which `isValid` is true.
    private func serveLinks(
        _ asset: LoopbackAsset, refusal: Int = 410, isValid: @escaping @Sendable (Int) -> Bool = { _ in true }
    ) {
        // Query strings are not part of a route of the test server.
        bench.upstream.serve("/api/download") { [calls, host] _ in
            let number = calls.next()
            host.serve("/\(number)") { _ in isValid(number) ? .asset(asset) : .response(status: refusal) }
            return .response(
                status: 200, headers: ["Content-Type": "application/json"],
                body: Array(#"{"href":"\#(host.url("/\(number)"))","method":"GET"}"#.utf8))
        }
    }

    @Test("One call returns the link for all windows and readers, with the origin's header fields")
    func oneCallForAllReaders() async throws {
        serveLinks(bench.asset)
        try await cache().run { cache in
            try await withThrowingTaskGroup(of: [UInt8].self) { group in
                for _ in 0..<100 {
                    group.addTask { try await cache.body(of: "films/a b+c.mp4", 0..<1000).bytes }
                }
                for try await bytes in group { #expect(bytes == bench.asset.bytes(0..<1000)) }
            }
            let last = try await cache.body(of: "films/a b+c.mp4", 5000..<6000)

            #expect(last.bytes == bench.asset.bytes(5000..<6000))
            #expect(calls.value == 1)
            let call = try #require(bench.upstream.requests.first)
            #expect(call.headers["Authorization"] == "OAuth secret")
            #expect(call.target.hasSuffix("?path=films/a%20b%2Bc.mp4"))
            #expect(host.requests.allSatisfy { $0.headers["Authorization"] == nil })
        }
    }

    @Test("The download gets the credentials if the origin says so")
    func theDownloadGetsTheCredentials() async throws {
        serveLinks(bench.asset)
        try await cache { $0.resolution.sendsCredentials = true }.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            #expect(host.requests.map { $0.headers["Authorization"] } == ["OAuth secret"])
        }
    }

    @Test("A refused link is resolved again once", arguments: [401, 403, 404, 410])
    func aRefusedLinkIsResolvedAgain(status: Int) async throws {
        serveLinks(bench.asset, refusal: status) { $0 != 1 }
        try await cache().run { cache in
            let read = try await cache.body(of: "a.mp4", 0..<1000)
            #expect(read.bytes == bench.asset.bytes(0..<1000))
            #expect(calls.value == 2)
        }
    }

    @Test("A link that stays refused fails the read after two calls")
    func aLinkThatStaysRefused() async throws {
        serveLinks(bench.asset, refusal: 404) { _ in false }
        try await cache().run { cache in
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<1000) }
            #expect(error?.code == .upstreamRefused(status: 404))
            #expect(calls.value == 2)
        }
    }

    @Test("A link is called for again after its lifetime")
    func aLinkEnds() async throws {
        serveLinks(bench.asset)
        let test = try cache()
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            test.wallClock.advance(by: .seconds(217))
            _ = try await cache.body(of: "a.mp4", 2000..<3000)
            #expect(calls.value == 2)
        }
    }

    @Test("Another file behind a new link is another generation; bytes are never mixed")
    func anotherFileBehindANewLink() async throws {
        let first = LoopbackAsset(size: 100_000, seed: 1, etag: "\"one\"")
        let second = LoopbackAsset(size: 100_000, seed: 2, etag: "\"two\"")
        bench.upstream.serve("/api/download") { [calls, host] _ in
            let number = calls.next()
            host.serve("/\(number)", number == 1 ? first : second)
            return .response(status: 200, body: Array(#"{"href":"\#(host.url("/\(number)"))"}"#.utf8))
        }
        let test = try cache { $0.readAheadBytes = 64 << 10 }
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            test.wallClock.advance(by: .seconds(230))
            // The response had begun with bytes of the first file: it is cut, and the next one is of the second file.
            let cut = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<100_000) }
            let next = try await cache.body(of: "a.mp4", 0..<100_000)

            #expect(cut?.code == .assetChanged)
            #expect(next.bytes == second.bytes(0..<100_000))
        }
    }

    @Test("A link to a host that is not permitted is refused before any request to it")
    func aForeignHostIsRefused() async throws {
        serveLinks(bench.asset)
        try await cache { $0.resolution.hosts = ["*.storage.example"] }.run { cache in
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<1000) }
            #expect(error?.code == .upstreamForbidden)
            #expect(error?.message.contains("resolve.hosts") == true)
            #expect(host.requests.isEmpty)
        }
    }

    @Test("A POST call with a JSON body, whose path is escaped")
    func aPostCall() async throws {
        bench.upstream.serve("/api/link") { [host, asset = bench.asset] _ in
            host.serve("/x", asset)
            return .response(status: 200, body: Array(#"{"metadata":{},"links":["\#(host.url("/x"))"]}"#.utf8))
        }
        try await cache {
            $0.resolution.url = bench.upstream.url("/api/link")
            $0.resolution.method = .post
            $0.resolution.body = #"{"path":"/{path}"}"#
            $0.resolution.pointer = "/links/0"
        }.run { cache in
            let read = try await cache.body(of: "a%22b.mp4", 0..<1000)
            let call = try #require(bench.upstream.requests.first)

            #expect(read.bytes == bench.asset.bytes(0..<1000))
            #expect(call.method == "POST")
            #expect(call.headers["Content-Type"] == "application/json")
            #expect(call.headers["Content-Length"] == "\(#"{"path":"/a\"b.mp4"}"#.utf8.count)")
        }
    }

    @Test("The API's refusal is the status of the read", arguments: [401, 404])
    func theAPIRefuses(status: Int) async throws {
        bench.upstream.serve("/api/download") { [calls] _ in
            _ = calls.next()
            return .response(status: status)
        }
        try await cache().run { cache in
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<1000) }
            #expect(error?.code == .upstreamRefused(status: status))
            #expect(error?.message.contains("secret") == false)
        }
    }

    @Test("The target of a redirect is used for later windows as long as the redirect says")
    func aRedirectsTargetIsUsedAgain() async throws {
        host.serve("/b.mp4", bench.asset)
        bench.upstream.serve("/a.mp4") { [host] _ in
            .response(status: 302, headers: ["Location": host.url("/b.mp4"), "Cache-Control": "max-age=60"])
        }
        let test = try cache {
            $0.resolution = LinkResolution()
            $0.readAheadBytes = 64 << 10
        }
        try await test.run { cache in
            for first in stride(from: Int64(0), to: 500_000, by: 100_000) {
                let read = try await cache.body(of: "a.mp4", first..<first + 1000)
                #expect(read.bytes == bench.asset.bytes(first..<first + 1000))
            }
            #expect(bench.upstream.requests(for: "/a.mp4").count == 1)
            #expect(host.requests.count == 5)
        }
    }
}
