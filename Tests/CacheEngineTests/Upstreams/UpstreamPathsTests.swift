import CacheCore
import CacheTestKit
import Synchronization
import Testing

@testable import CacheEngine

/// Beliefs about addresses: the protocol that they require, and the path to them.
@Suite(.timeLimit(.minutes(5))) struct UpstreamPathsTests {
    private func head(_ url: String, version: String = "1.1", requiredHTTP1: Bool = false) -> UpstreamHead {
        var head = UpstreamHead(
            status: 200, headers: [:], finalURL: url, httpVersion: version,
            timings: TransferTimings(firstByte: .milliseconds(20)))
        head.requiredHTTP1 = requiredHTTP1
        return head
    }

    @Test("HTTP/1.1 is required for ten minutes after the last reset")
    func lifetime() {
        let time = Mutex(Duration.zero)
        let now = { @Sendable (seconds: Int) in time.withLock { $0 = .seconds(seconds) } }
        let paths = UpstreamPaths { time.withLock { $0 } }
        let url = "https://a.example/x"
        paths.answered(url, with: head(url, requiredHTTP1: true))
        now(300)
        paths.answered(url, with: head(url))
        #expect(paths.requiresHTTP1("https://a.example/y") && !paths.requiresHTTP1("https://b.example/x"))
        #expect(paths.observations(of: [url]).map(\.kind) == [.http1Required])
        now(600)
        #expect(!paths.requiresHTTP1(url) && paths.observations(of: [url]).isEmpty)
        paths.answered(url, with: head(url, requiredHTTP1: true))
        #expect(paths.requiresHTTP1(url))
        paths.forget([url])
        #expect(!paths.requiresHTTP1(url))
    }

    @Test("The target of a redirect requires HTTP/1.1 for itself alone")
    func redirects() {
        let paths = UpstreamPaths { .zero }
        paths.answered("https://a.example/x", with: head("https://b.example/x", requiredHTTP1: true))
        #expect(paths.requiresHTTP1("https://b.example/y") && !paths.requiresHTTP1("https://a.example/x"))
    }

    @Test("The addresses that were used last are remembered")
    func limit() {
        let paths = UpstreamPaths(limit: 100) { .zero }
        for number in 0..<1000 {
            let url = "https://\(number).example/x"
            paths.answered(url, with: head(url))
            #expect(paths["https://0.example/y"] != nil && paths[url] != nil)
        }
        #expect(paths["https://1.example/x"] == nil)
    }

    @Test("After a reset with HTTP_1_1_REQUIRED, requests use HTTP/1.1 until this is forgotten (RFC 9113 §7)")
    func requirement() async throws {
        let upstream = try await MultiplexedUpstream(acceptsHTTP1: true)
        let asset = LoopbackAsset(size: 100_000)
        for path in ["/a", "/b", "/c"] {
            upstream.serve(path) { $0.isHTTP1 ? $0.serve(asset) : $0.requireHTTP1() }
        }
        var settings = OriginSettings(baseURL: upstream.url(""))
        (settings.allowPrivateAddresses, settings.tls.verify) = (true, false)
        let directory = try TemporaryDirectory()
        let origin = Origin(name: "media", settings: settings)
        try await TestCache(directory: directory.path, origins: [origin]).run { cache in
            for path in ["a", "b"] {
                #expect(try await cache.body(of: path).bytes.isSame(as: asset.bytes(0..<100_000)))
            }
            let kinds = cache.configuration.report(on: origin).observations.map(\.kind)
            let resets = upstream.streams.count { !$0.isHTTP1 }
            try cache.configuration.forgetObservations(of: "media")
            #expect(try await cache.body(of: "c").bytes.isSame(as: asset.bytes(0..<100_000)))

            #expect(kinds.contains(.http1Required) && resets == 1)
            #expect(upstream.streams.count { !$0.isHTTP1 } == 2)
        }
    }
}
