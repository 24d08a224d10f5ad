import CacheCore
import CacheTestKit
import Foundation
import Testing

@testable import CacheEngine

@Suite struct CredentialTests {
    let bench: Bench
    let secrets: TemporaryDirectory

    init() throws {
        bench = try Bench()
        secrets = try TemporaryDirectory()
        write("X-Key: one")
    }

    private func write(_ text: String, to name: String = "media.txt") {
        #expect(FileManager.default.createFile(atPath: secrets.path(name), contents: Data(text.utf8)))
    }

    private func cache(_ change: (inout OriginSettings) -> Void = { _ in }) throws -> TestCache {
        var origin = TestCache.origin(bench.upstream)
        origin.settings.credentialsFile = "media.txt"
        change(&origin.settings)
        return try TestCache(
            directory: bench.directory.path, origins: [origin], credentialsDirectory: secrets.path)
    }

    /// Serves the asset to requests with `key`, and 401 to all others. If it `rotates`, a 401 also writes the key to
    /// the credentials file.
    private func demand(_ key: String, rotates: Bool = false) {
        bench.upstream.serve("/a.mp4") { [asset = bench.asset] request in
            if request.headers["X-Key"] == key { return .asset(asset) }
            if rotates { write("X-Key: \(key)") }
            return .response(status: 401)
        }
    }

    private func keys(_ upstream: LoopbackUpstream? = nil) -> [String?] {
        (upstream ?? bench.upstream).requests.map { $0.headers["X-Key"] }
    }

    @Test("Fields of the credentials file override the fields of the origin")
    func theFilesFieldsGoOverTheOriginsOwn() async throws {
        write("# two\nX-Key: file\nAuthorization: Bearer t\n")
        try await cache { $0.headers = ["X-Key": "setting", "X-Other": "o"] }.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<10)
            let request = try #require(bench.upstream.requests.first)

            #expect(request.headers.values("X-Key") == ["file"])
            #expect(request.headers["Authorization"] == "Bearer t")
            #expect(request.headers["X-Other"] == "o")
        }
    }

    @Test("A changed credentials file is used without waiting for a 401")
    func aChangedFileIsTakenUpWithoutARefusal() async throws {
        try await cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<10)
            write("X-Key: two")
            let isTaken = try await eventually {
                cache.context.upstreams.credentials.fields(of: "media.txt")["X-Key"] == "two"
            }
            _ = try await cache.body(of: "a.mp4", 10..<20)

            #expect(isTaken)
            #expect(keys() == ["one", "two"])
        }
    }

    @Test("A file that is loaded for an origin stays until the origin is mounted, then until nothing names it")
    func aLoadedFileWaitsForItsOrigin() async throws {
        write("X-Key: new", to: "new.txt")
        try await cache().run { cache in
            let credentials = cache.context.upstreams.credentials
            try await credentials.load("new.txt")
            try await credentials.reread(["media.txt"])
            #expect(credentials.fields(of: "new.txt")["X-Key"] == "new")

            try await credentials.reread(["media.txt", "new.txt"])
            try await credentials.reread(["media.txt"])
            #expect(credentials.fields(of: "new.txt") == HeaderList())
            #expect(credentials.fields(of: "media.txt")["X-Key"] == "one")
        }
    }

    @Test("A 401 reloads the credentials file and retries once", arguments: [0, 3])
    func aRefusalReadsTheFileAgainAndIsTriedOnceMore(_ retries: Int) async throws {
        demand("two", rotates: true)
        try await cache { $0.retries = retries }.run { cache in
            let read = try await cache.body(of: "a.mp4", 0..<1000)

            #expect(read.bytes == bench.asset.bytes(0..<1000))
            #expect(bench.upstream.requests.map(\.status) == [401, 206])
            #expect(keys() == ["one", "two"])
        }
    }

    @Test("A second 401 in a row fails the read")
    func aSecondRefusalInARowIsTold() async throws {
        demand("never")
        try await cache().run { cache in
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<1000) }

            #expect(error?.code == .upstreamRefused(status: 401))
            #expect(bench.upstream.requests.map(\.status) == [401, 401])
            #expect(error?.message.contains("one") == false)
        }
    }

    @Test("Each read can reload the credentials file")
    func eachReadMayHaveTheFileReadAgain() async throws {
        demand("two")
        try await cache().run { cache in
            await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<1000) }
            write("X-Key: two")
            let read = try await cache.body(of: "a.mp4", 0..<1000)

            #expect(read.bytes == bench.asset.bytes(0..<1000))
        }
    }

    @Test("Without a credentials file a 401 fails at once")
    func aRefusalWithoutAFileIsToldAtOnce() async throws {
        demand("never")
        try await cache { $0.credentialsFile = nil }.run { cache in
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<1000) }

            #expect(error?.code == .upstreamRefused(status: 401))
            #expect(bench.upstream.requests.count == 1)
        }
    }

    @Test("Concurrent readers share the retry after a 401")
    func manyReadersShareTheRetry() async throws {
        demand("two", rotates: true)
        try await cache { $0.retries = 0 }.run { cache in
            try await withThrowingTaskGroup(of: [UInt8].self) { group in
                for _ in 0..<10 { group.addTask { try await cache.body(of: "a.mp4", 0..<1000).bytes } }
                for try await bytes in group { #expect(bytes == bench.asset.bytes(0..<1000)) }
            }

            #expect(keys() == ["one", "two"])
        }
    }

    @Test("A redirect to a host that redirectHosts does not permit is refused, also after an earlier permission")
    func redirectsEndAtTheSetting() async throws {
        let other = try LoopbackUpstream()
        other.serve("/b", bench.asset)
        bench.upstream.serve("/a.mp4") { [url = other.url("/b")] _ in
            .response(status: 302, headers: ["Location": url, "Cache-Control": "max-age=600"])
        }
        try await cache { $0.redirectHosts = ["127.0.0.1:*"] }.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<10)
            var origin = TestCache.origin(bench.upstream)
            (origin.settings.credentialsFile, origin.settings.redirectHosts) = ("media.txt", ["*.example"])
            _ = try await cache.configuration.setOrigin(origin)
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 5000..<5010) }
            #expect(error?.code == .upstreamForbidden)
            #expect(other.requests.count == 1 && keys(other) == [nil])
        }
    }

    @Test("Credentials are sent only to the host of the origin")
    func theFileStaysWithTheOriginsHost() async throws {
        let other = try LoopbackUpstream()
        other.serve("/b", bench.asset)
        bench.upstream.serve("/a.mp4") { [url = other.url("/b")] _ in .redirect(to: url) }
        try await cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<10)

            #expect(keys() == ["one"])
            #expect(keys(other) == [nil])
        }
    }

    @Test("Probes and jobs send the credentials")
    func probesAndJobsBringTheFileToo() async throws {
        bench.upstream.serve("/b.mp4", LoopbackAsset(size: 100))
        try await cache().run { cache in
            let job = try await cache.finished(try await cache.jobs.submit(CreateJobRequest.of("b.mp4")))
            _ = try await cache.prober.probe(Bench.media, timeout: .seconds(5), refresh: true)

            #expect(job.record.state == .succeeded)
            #expect(keys() == ["one", "one"])
        }
    }

    @Test("A probe is retried once after a 401")
    func aProbeIsTriedOnceMoreToo() async throws {
        demand("two", rotates: true)
        try await cache().run { cache in
            let report = try await cache.prober.probe(Bench.media, timeout: .seconds(5), refresh: true)

            #expect(report.generation.length == bench.asset.size)
            #expect(bench.upstream.requests.map(\.status) == [401, 200])
        }
    }

    @Test("A probe with a second 401 fails with that status")
    func aProbeThatIsRefusedAgainSaysSo() async throws {
        demand("never")
        try await cache().run { cache in
            let failure = await #expect(throws: ProbeFailure.self) {
                try await cache.prober.probe(Bench.media, timeout: .seconds(5), refresh: true)
            }

            #expect(failure?.error.code == .upstreamRefused(status: 401))
            #expect(bench.upstream.requests.map(\.method) == ["HEAD", "HEAD", "GET"])
        }
    }

    @Test(
        "A credentials file that becomes invalid is ignored", arguments: ["no line of a file", "Range: bytes=0-1", ""])
    func aFileThatGoesBadIsPassedOver(_ text: String) async throws {
        try await cache().run { cache in
            write(text)
            try await cache.context.upstreams.credentials.reread(["media.txt"])
            _ = try await cache.body(of: "a.mp4", 0..<10)

            #expect(keys() == ["one"])
        }
    }

    @Test(
        "An origin with an unusable credentials file is rejected",
        arguments: ["missing.txt", "bad.txt", "../media.txt", "outside.txt", "."])
    func anOriginWithAFileThatCannotBeUsedIsNotSetUp(_ name: String) async throws {
        write("Bearer secret", to: "bad.txt")
        let outside = try TemporaryDirectory()
        #expect(FileManager.default.createFile(atPath: outside.path("x"), contents: Data("X-Key: out".utf8)))
        try FileManager.default.createSymbolicLink(
            atPath: secrets.path("outside.txt"), withDestinationPath: outside.path("x"))
        try await cache().run { cache in
            var origin = TestCache.origin(bench.upstream, name: "other")
            origin.settings.credentialsFile = name
            let error = await #expect(throws: CacheError.self) {
                try await cache.configuration.setOrigin(origin)
            }

            #expect(error?.code == .invalidField("credentialsFile"))
            #expect(error?.message.contains("secret") == false)
            #expect(throws: CacheError.self) { try cache.configuration.origin("other") }
        }
    }

    @Test("A new origin sends its credentials from the first request")
    func anOriginThatIsSetUpBringsItsFileFromTheFirstRequestOn() async throws {
        write("X-Key: later", to: "later.txt")
        try await cache().run { cache in
            var origin = TestCache.origin(bench.upstream)
            origin.settings.credentialsFile = "later.txt"
            _ = try await cache.configuration.setOrigin(origin)
            _ = try await cache.body(of: "a.mp4", 0..<10)

            #expect(keys() == ["later"])
        }
    }

    @Test("A credentials file missing at the start is found later")
    func aStartWithoutTheFileServesAndFindsItLater() async throws {
        try FileManager.default.removeItem(atPath: secrets.path("media.txt"))
        demand("one")
        try await cache().run { cache in
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<10) }
            write("X-Key: one")
            let read = try await cache.body(of: "a.mp4", 0..<10)

            #expect(error?.code == .upstreamRefused(status: 401))
            #expect(read.bytes == bench.asset.bytes(0..<10))
        }
    }
}
