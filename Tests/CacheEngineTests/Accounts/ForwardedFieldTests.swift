import CacheCore
import CacheTestKit
import NIOCore
import Testing

@testable import CacheEngine

@Suite struct ForwardedFieldTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    private func cache(shared: Bool = false) throws -> TestCache {
        var origin = TestCache.origin(bench.upstream)
        origin.settings.forwarded = ["Authorization", "X-User"]
        origin.settings.sharesForwarded = shared
        return try TestCache(directory: bench.directory.path, origins: [origin])
    }

    /// Serves a file of its own to each user, and 403 to all others.
    private func serveEachUser() {
        let files = ["Bearer a": LoopbackAsset(size: 5000, seed: 1), "Bearer b": LoopbackAsset(size: 5000, seed: 2)]
        bench.upstream.serve("/a.mp4") { request in
            request.headers["Authorization"].flatMap { files[$0] }.map { .asset($0) } ?? .response(status: 403)
        }
    }

    private func read(
        _ cache: AssetCache, as user: String?, _ range: ByteRange = 0..<5000
    ) async throws -> [UInt8] {
        let read: ContentRead
        do {
            read = try await cache.reader.read(
                .mounted(origin: "media", path: "a.mp4", key: nil),
                request: ContentRequest(
                    headers: ["Range": range.fieldValue],
                    credentials: user.map { ["Authorization": $0] } ?? HeaderList()))
        } catch {
            throw error.error
        }
        var bytes: [UInt8] = []
        while let buffer = try await read.next() { bytes += buffer.readableBytesView }
        read.finish(.sent)
        return bytes
    }

    @Test("Each value of a forwarded field has an asset of its own")
    func eachValueHasItsOwnAsset() async throws {
        serveEachUser()
        try await cache().run { cache in
            for _ in 0..<2 {
                let (first, second) = (try await read(cache, as: "Bearer a"), try await read(cache, as: "Bearer b"))
                #expect(first == LoopbackUpstream.bytes(at: 0..<5000, seed: 1))
                #expect(second == LoopbackUpstream.bytes(at: 0..<5000, seed: 2))
            }
            #expect(bench.upstream.requests.count == 2)
            let denied = await #expect(throws: CacheError.self) { try await read(cache, as: "Bearer c") }
            #expect(denied?.code == .upstreamRefused(status: 403))
            let anonymous = await #expect(throws: CacheError.self) { try await read(cache, as: nil) }
            #expect(anonymous?.code == .upstreamRefused(status: 403))
        }
    }

    @Test("The key of a private asset does not contain the value, nor a digest that can be computed without the store")
    func theKeyIsNoDigestOfTheValue() async throws {
        serveEachUser()
        try await cache().run { cache in
            _ = try await read(cache, as: "Bearer a")
            let keys = try await cache.assets.page(AssetQuery()).items.map(\.record.key)
            let key = try #require(keys.first)
            let guess = AssetID(naming: "authorization:Bearer a").description.prefix(16)

            #expect(keys.count == 1)
            #expect(key.hasPrefix("/o/media/a.mp4 "))
            #expect(!key.contains("Bearer") && !key.contains(guess))
        }
    }

    @Test("A shared asset is read after a proof of the reader's right, which holds for a minute")
    func aSharedAssetNeedsAProof() async throws {
        let asset = LoopbackAsset(size: 5000, seed: 1)
        bench.upstream.serve("/a.mp4") { request in
            ["Bearer a", "Bearer b"].contains(request.headers["Authorization"])
                ? .asset(asset) : .response(status: 401)
        }
        let test = try cache(shared: true)
        try await test.run { cache in
            _ = try await read(cache, as: "Bearer a")
            let first = bench.upstream.requests.count
            _ = try await read(cache, as: "Bearer b")
            let second = Array(bench.upstream.requests.dropFirst(first))
            _ = try await read(cache, as: "Bearer b")

            #expect(second.map(\.range) == [0..<1])
            #expect(bench.upstream.requests.count == first + 1)

            let denied = await #expect(throws: CacheError.self) { try await read(cache, as: "Bearer c") }
            #expect(denied?.code == .upstreamRefused(status: 401))

            test.wallClock.advance(by: .seconds(61))
            let before = bench.upstream.requests.count
            _ = try await read(cache, as: "Bearer b")
            #expect(bench.upstream.requests.count == before + 1)
        }
    }

    @Test("Readers to whom the upstream shows different versions never share, also at once and after the lifetime")
    func differentVersionsAreNotShared() async throws {
        serveVersions()
        let test = try cache(shared: true)
        try await test.run { cache in
            for _ in 0..<2 {
                try await withThrowingTaskGroup(of: Bool.self) { group in
                    for (user, seed) in [("Bearer a", UInt64(1)), ("Bearer b", 2), ("", 3)] {
                        group.addTask {
                            try await read(cache, as: user.isEmpty ? nil : user)
                                == LoopbackUpstream.bytes(at: 0..<5000, seed: seed)
                        }
                    }
                    for try await isOwn in group { #expect(isOwn) }
                }
                test.wallClock.advance(by: .seconds(4000))
            }
        }
    }

    /// Serves a version of its own to two users and to readers without credentials.
    private func serveVersions() {
        bench.upstream.serve("/a.mp4") { request in
            switch request.headers["Authorization"] {
            case "Bearer a": .asset(LoopbackAsset(size: 5000, seed: 1, etag: "\"a\""))
            case "Bearer b": .asset(LoopbackAsset(size: 5000, seed: 2, etag: "\"b\""))
            default: .asset(LoopbackAsset(size: 5000, seed: 3, etag: "\"none\""))
            }
        }
    }

    @Test("The content of a private asset cannot be read by its identifier", arguments: [false, true])
    func noReadByIdentifier(shared: Bool) async throws {
        serveVersions()
        try await cache(shared: shared).run { cache in
            _ = try await read(cache, as: "Bearer a")
            let id = try #require(try await cache.assets.page(AssetQuery()).items.first?.record.id)
            let failure = await #expect(throws: ReadFailure.self) {
                try await cache.reader.read(.known(id), request: ContentRequest())
            }
            #expect(failure?.error.code == .readerRequired)
        }
    }

    @Test("Forwarded fields are not sent to the target of a redirect")
    func aRedirectsTargetGetsNoField() async throws {
        let other = try LoopbackUpstream()
        other.serve("/b.mp4", bench.asset)
        bench.upstream.serve("/a.mp4") { _ in .redirect(to: other.url("/b.mp4"), status: 302) }
        try await cache().run { cache in
            _ = try await read(cache, as: "Bearer a", 0..<100)
            #expect(bench.upstream.requests.first?.headers["Authorization"] == "Bearer a")
            #expect(other.requests.count == 1)
            #expect(other.requests.first?.headers["Authorization"] == nil)
        }
    }

    // MARK: Requests without a reader

    /// The identifier of the only private asset.
    private func privateAsset(in cache: AssetCache) async throws -> AssetID {
        try #require(try await cache.assets.page(AssetQuery()).items.first { $0.record.key.contains(" ") }?.record.id)
    }

    /// The finished job for one asset, and the number of upstream requests that it caused.
    private func job(
        for id: AssetID, in cache: AssetCache
    ) async throws -> (state: JobState, error: String?, requests: Int) {
        let before = bench.upstream.requests.count
        let job = try await cache.jobs.submit(CreateJobRequest(items: [.init(reference: .known(id))]))
        for await state in try await cache.jobs.events(job.record.id) where state.record.state.isFinished {
            let item = try await cache.jobs.items(job.record.id).items.first
            return (state.record.state, item?.error?.code, bench.upstream.requests.count - before)
        }
        throw CacheError(.internal, "The job has not ended.")
    }

    @Test("A job never fetches into an asset that a reader's field opened", arguments: [false, true])
    func aJobDoesNotFetchIntoAPrivateAsset(isShared: Bool) async throws {
        serveVersions()
        try await cache(shared: isShared).run { cache in
            _ = try await read(cache, as: "Bearer a", 0..<1000)
            let id = try await privateAsset(in: cache)
            let partial = try await job(for: id, in: cache)
            #expect(partial == (.failed, "readerRequired", 0))

            let rest = try await read(cache, as: "Bearer a")
            #expect(rest == LoopbackUpstream.bytes(at: 0..<5000, seed: 1))
            let complete = try await job(for: id, in: cache)
            #expect(complete == (.succeeded, nil, 0))
        }
    }

    @Test("A stale private asset is revalidated with the fields of its reader only")
    func aStalePrivateAssetIsRevalidatedByItsReader() async throws {
        serveVersions()
        let test = try cache()
        try await test.run { cache in
            _ = try await read(cache, as: "Bearer a")
            let id = try await privateAsset(in: cache)
            test.wallClock.advance(by: .seconds(100_000))
            let stale = try await job(for: id, in: cache)
            #expect(stale == (.failed, "readerRequired", 0))

            _ = try await read(cache, as: "Bearer a")
            #expect(bench.upstream.requests.last?.headers["Authorization"] == "Bearer a")
        }
    }

    @Test("A job that waits beside a reader ends with it and sends nothing")
    func aJobBesideAReaderSendsNothing() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        let asset = LoopbackAsset(size: 400_000, seed: 1)
        bench.upstream.serve("/a.mp4") { request in
            request.headers["Authorization"] == "Bearer a" ? .asset(asset) : .response(status: 403)
        }
        bench.upstream.failNext("/a.mp4", .stall(after: 1000, until: latch))
        try await cache().run { cache in
            let reader = Task { try await read(cache, as: "Bearer a", 0..<2000) }
            await latch.reached()
            let open = try #require(cache.context.openAssets.all.first { $0.target.isReadersOwn })
            #expect(try await eventually { open.record != nil })  // the head has arrived
            let ended = Task { try await job(for: open.id, in: cache) }
            latch.release()
            _ = try await reader.value
            let result = try await ended.value

            #expect(result.state == .failed && result.error == "readerRequired", "\(result)")
            #expect(bench.upstream.requests.allSatisfy { $0.headers["Authorization"] == "Bearer a" })
        }
    }

    @Test("The fields of a reader are forgotten when it leaves")
    func theFieldsOfAReaderAreForgotten() async throws {
        serveEachUser()
        try await cache().run { cache in
            let read = try await cache.reader.read(
                .mounted(origin: "media", path: "a.mp4", key: nil),
                request: ContentRequest(credentials: ["Authorization": "Bearer a"]))
            let asset = try #require(cache.context.openAssets.acquire(read.assetID))
            defer { cache.context.openAssets.release(asset) }
            #expect(asset.look { $0.forwarded.count } == 1)
            while try await read.next() != nil {}
            read.finish(.sent)
            #expect(asset.look { $0.forwarded.isEmpty && $0.target.forwarded == nil })
        }
    }

    @Test("The media index of a private asset is read from cached bytes only")
    func theIndexOfAPrivateAssetIsNotFetched() async throws {
        serveEachUser()
        try await cache().run { cache in
            _ = try await read(cache, as: "Bearer a", 4000..<5000)
            let id = try await privateAsset(in: cache)
            let before = bench.upstream.requests.count
            let failure = await #expect(throws: CacheError.self) { try await cache.media.media(of: id) }

            #expect(failure?.code == .conflict)
            #expect(bench.upstream.requests.count == before)
        }
    }

    @Test("The explanation of a private asset by its identifier names the missing reader")
    func theExplanationNamesTheMissingReader() async throws {
        serveEachUser()
        try await cache().run { cache in
            _ = try await read(cache, as: "Bearer a", 0..<1000)
            let explanation = try await cache.reader.explain(
                .known(try await privateAsset(in: cache)), request: ContentRequest(headers: ["Range": "bytes=0-4999"]))

            #expect(explanation.source.refusal?.code == .readerRequired)
            #expect(explanation.forecast.requests.isEmpty)
        }
    }

    @Test("A forwarded field that selects variants is not sent to the target of a redirect")
    func aRedirectsTargetGetsNoVariantField() async throws {
        let other = try LoopbackUpstream()
        other.serve("/b.mp4", LoopbackAsset(size: 5000, seed: 1, headers: ["Vary": "X-User, Accept-Language"]))
        bench.upstream.serve("/a.mp4") { _ in .redirect(to: other.url("/b.mp4"), status: 302) }
        try await cache().run { cache in
            for range in [0..<100, 200..<300] as [ByteRange] {
                let request = ContentRequest(
                    headers: ["Range": range.fieldValue, "X-User": "secret", "Accept-Language": "en"])
                let read = try await cache.reader.read(
                    .mounted(origin: "media", path: "a.mp4", key: nil), request: request)
                while try await read.next() != nil {}
                read.finish(.sent)
            }
            #expect(bench.upstream.requests.allSatisfy { $0.headers["X-User"] == "secret" })
            #expect(other.requests.contains { $0.headers["Accept-Language"] == "en" })
            #expect(other.requests.allSatisfy { $0.headers["X-User"] == nil })
        }
    }

    @Test("A refusal of a shared asset is repeated for a minute, and asked for once", arguments: [401, 403])
    func aRefusalIsRepeated(status: Int) async throws {
        bench.upstream.serve("/a.mp4") { _ in .response(status: status) }
        let test = try cache(shared: true)
        try await test.run { cache in
            await withTaskGroup(of: CacheError?.self) { group in
                for _ in 0..<20 {
                    group.addTask { await #expect(throws: CacheError.self) { try await read(cache, as: "Bearer c") } }
                }
                for await error in group { #expect(error?.code == .upstreamRefused(status: status)) }
            }
            #expect(bench.upstream.requests.count == 1)
            for user in ["Bearer c", "Bearer d", "Bearer c"] {
                _ = await #expect(throws: CacheError.self) { try await read(cache, as: user) }
            }
            #expect(bench.upstream.requests.count == 2)
            test.wallClock.advance(by: .seconds(61))
            bench.upstream.serve("/a.mp4", LoopbackAsset(size: 5000, seed: 1))
            let bytes = try await read(cache, as: "Bearer c")
            #expect(bytes == LoopbackUpstream.bytes(at: 0..<5000, seed: 1))
        }
    }

    @Test("A failure of a proof is no refusal", arguments: [404, 503])
    func aFailureIsNotRepeated(status: Int) async throws {
        bench.upstream.serve("/a.mp4") { _ in .response(status: status) }
        try await cache(shared: true).run { cache in
            _ = await #expect(throws: CacheError.self) { try await read(cache, as: "Bearer a") }
            bench.upstream.serve("/a.mp4", LoopbackAsset(size: 5000, seed: 1))
            let bytes = try await read(cache, as: "Bearer a")
            #expect(bytes == LoopbackUpstream.bytes(at: 0..<5000, seed: 1))
        }
    }

    @Test("Invented credentials displace no proof")
    func inventedCredentialsDisplaceNoProof() throws {
        let (proofs, now, asset) = (AccessProofs(limit: 100), Timestamp(seconds: 0), AssetID(naming: "a"))
        let known = AccessProofs.Subject(asset: asset, reader: "known")
        proofs.add(.version("v1"), to: known, at: now)
        let refusal = CacheError(.upstreamRefused(status: 403), "No.")
        for number in 0..<1000 {
            proofs.add(.refused(refusal), to: AccessProofs.Subject(asset: asset, reader: "\(number)"), at: now)
        }
        guard case .version("v1") = try #require(proofs.answer(to: known, at: now)).answer else {
            throw CacheError(.internal, "The proof is another one.")
        }
        #expect(proofs.answer(to: AccessProofs.Subject(asset: asset, reader: "999"), at: now) != nil)
        #expect(proofs.answer(to: AccessProofs.Subject(asset: asset, reader: "0"), at: now) == nil)
        #expect(proofs.answer(to: known, at: now + AccessProofs.lifetime) == nil)
    }
}
