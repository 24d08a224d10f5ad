import CacheCore
import CacheStore
import CacheTestKit
import Foundation
import Testing

@testable import CacheEngine

@Suite struct FallbackTests {
    let bench: Bench
    let fallbacks: TemporaryDirectory
    let notice = LoopbackBody.bytes(at: 0..<300_000, seed: 7)

    init() throws {
        bench = try Bench()
        fallbacks = try TemporaryDirectory()
        #expect(FileManager.default.createFile(atPath: fallbacks.path("notice.mp4"), contents: Data(notice)))
        bench.upstream.serve("/a.mp4") { _ in .response(status: 503) }
    }

    private func cache(_ fallback: OriginSettings.Fallback = .file("notice.mp4"), disk: any Disk = SystemDisk())
        throws -> TestCache
    {
        var origin = TestCache.origin(bench.upstream)
        origin.settings.retries = 0
        origin.settings.fallback = fallback
        return try TestCache(
            directory: bench.directory.path, origins: [origin], disk: disk, fallbackDirectory: fallbacks.path)
    }

    /// Serves an asset at `/b.mp4`, and returns the fallback that names it.
    private func standIn(_ asset: LoopbackAsset) -> OriginSettings.Fallback {
        bench.upstream.serve("/b.mp4", asset)
        return .asset(AssetID(naming: "/o/media/b.mp4"))
    }

    private func read(
        _ cache: AssetCache, _ headers: HeaderList = [:], isHead: Bool = false
    ) async throws -> (read: ContentRead, bytes: [UInt8]) {
        let read = try await cache.reader.read(Bench.media, request: ContentRequest(isHead: isHead, headers: headers))
        var bytes: [UInt8] = []
        while let more = try await read.nextBytes() { bytes += more }
        read.finish(.sent)
        return (read, bytes)
    }

    /// The number of descriptors of this process for the file.
    private func descriptors(of path: String) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count { number in
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + number)) == path
        }
    }

    // MARK: Fallback file

    @Test(
        "A failed read is answered with the whole fallback file",
        arguments: [
            [:] as HeaderList, ["Range": "bytes=5-9"], ["Range": "bytes=-1"], ["Range": "bytes=0-1,5-6"],
            ["If-None-Match": "*"], ["If-Match": "\"x\""], ["If-Modified-Since": "Fri, 31 Dec 2027 00:00:00 GMT"],
        ])
    func aFailedReadIsAnsweredWithAllOfTheFile(_ headers: HeaderList) async throws {
        try await cache().run { cache in
            let (read, bytes) = try await read(cache, headers)

            #expect(bytes.isSame(as: notice))
            #expect(read.plan.status == 200 && read.plan.contentLength == 300_000)
            #expect(
                read.plan.headers
                    == ["Cache-Control": "no-store", "Content-Type": "video/mp4", "Content-Length": "300000"])
            #expect(read.outcome.detail == "fallback" && read.outcome.requestClass == .error)
            #expect(read.outcome.forwarding == .miss && read.outcome.upstreamStatus == 503)
            #expect(read.age == nil)
            #expect(read.assetID == AssetID(naming: "/o/media/a.mp4"))
        }
    }

    @Test("HEAD gets the length of the fallback file and no bytes")
    func aHeadIsAnsweredWithItsLengthAndNoBytes() async throws {
        try await cache().run { cache in
            let (read, bytes) = try await read(cache, isHead: true)

            #expect(bytes.isEmpty && read.plan.status == 200)
            #expect(read.plan.headers["Content-Length"] == "300000")
        }
    }

    @Test("The fallback file is open only while it is read")
    func theFileIsOpenOnlyWhileItIsRead() async throws {
        try await cache().run { cache in
            let read = try await cache.reader.read(Bench.media, request: ContentRequest())
            _ = try await read.nextBytes()
            let during = try descriptors(of: fallbacks.path("notice.mp4"))
            read.finish(.clientGone)

            #expect(during == 1)
            #expect(try await eventually { try descriptors(of: fallbacks.path("notice.mp4")) == 0 })
            #expect(try await eventually { try await cache.isAtRest() })
        }
    }

    @Test("The fallback is not stored")
    func nothingOfItIsKept() async throws {
        let test = try cache()
        try await test.run { cache in
            _ = try await read(cache)
            let page = try await cache.assets.page(AssetQuery())
            let figures = try await cache.statistics.snapshot().all

            #expect(page.items.isEmpty)
            #expect(try await test.store.usedDiskBytes() == 0)
            #expect(cache.context.space.with { $0.usedBytes } == 0)
            #expect(figures.count(.error) == 1 && figures.requests.values.reduce(0, +) == 1)
            #expect(figures.servedFromCacheBytes == 300_000)
            #expect(cache.statistics.top(by: .served, limit: 10).isEmpty)
        }
    }

    @Test("The fallback leaves the cached bytes of the asset unchanged")
    func theAssetsOwnBytesAreNotTouchedByIt() async throws {
        bench.upstream.serve("/a.mp4", bench.asset)
        try await cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            bench.upstream.serve("/a.mp4") { _ in .response(status: 503) }
            let fallback = try await cache.body(of: "a.mp4", 5000..<6000)
            let kept = try await cache.body(of: "a.mp4", 0..<1000)
            bench.upstream.serve("/a.mp4", bench.asset)
            let mended = try await cache.body(of: "a.mp4", 0..<6000)

            #expect(fallback.bytes.isSame(as: notice) && fallback.status == 200)
            #expect(fallback.outcome.forwarding == .stale)
            #expect(kept.outcome.requestClass == .hit && kept.bytes == bench.asset.bytes(0..<1000))
            #expect(mended.bytes.isSame(as: bench.asset.bytes(0..<6000)))
        }
    }

    @Test(
        "If the fallback file cannot be read, the read fails with the upstream error",
        arguments: ["none.mp4", "../notice.mp4", "."])
    func whereTheFileCannotBeReadTheErrorIsTold(_ path: String) async throws {
        try await cache(.file(path)).run { cache in
            let error = await #expect(throws: ReadFailure.self) { try await read(cache) }
            let figures = try await cache.statistics.snapshot().all

            #expect(error?.error.code == .upstreamRefused(status: 503))
            #expect(figures.count(.error) == 1)
        }
    }

    @Test("A fallback file that shrinks during the response cuts it off")
    func aFileThatShrinksWhileItIsSentIsCutOff() async throws {
        try await cache().run { cache in
            let read = try await cache.reader.read(Bench.media, request: ContentRequest())
            _ = try await read.nextBytes()
            #expect(truncate(fallbacks.path("notice.mp4"), 200_000) == 0)
            let error = await #expect(throws: CacheError.self) {
                while try await read.nextBytes() != nil {}
            }
            read.finish(.failed(CacheError(.storageCorrupt, "It ended.")))

            #expect(error?.code == .storageCorrupt)
        }
    }

    @Test("A fallback file is never sent with sendfile")
    func nothingOfAFileThatMayShrinkIsLeftToTheKernel() async throws {
        try await cache().run { cache in
            let read = try await cache.reader.read(Bench.media, request: ContentRequest())
            let turn = try read.nextWithoutBlocking(fromFile: true) {}
            read.finish(.clientGone)
            let isLeft = if case .file = turn { true } else { false }

            #expect(!isLeft)
        }
    }

    // MARK: Fallback asset

    @Test("A fallback asset is read through the cache")
    func anAssetStandsInAndIsReadThroughTheCache() async throws {
        let other = LoopbackAsset(size: 1_000_000, seed: 3, contentType: "video/mp4")
        try await cache(standIn(other)).run { cache in
            _ = try await cache.body(of: "b.mp4", 0..<10)
            let first = try await read(cache, ["Range": "bytes=5-9"])
            let second = try await read(cache)

            #expect(first.bytes.isSame(as: other.bytes(0..<1_000_000)) && second.bytes.isSame(as: first.bytes))
            #expect(first.read.plan.headers["Content-Type"] == "video/mp4")
            #expect(first.read.plan.headers["ETag"] == nil && first.read.plan.headers["Accept-Ranges"] == nil)
            #expect(first.read.plan.headers["Cache-Control"] == "no-store")
            #expect(second.read.outcome.detail == "fallback" && second.read.age == nil)
            #expect(bench.upstream.requestedBytes("/b.mp4") == 1_000_000)
            #expect(try await cache.statistics.snapshot().all.count(.error) == 2)
        }
    }

    @Test("An unknown asset is no fallback")
    func anAssetThatNobodyKnowsIsNoFallback() async throws {
        try await cache(.asset(AssetID(high: 1, low: 2))).run { cache in
            let error = await #expect(throws: ReadFailure.self) { try await read(cache) }

            #expect(error?.error.code == .upstreamRefused(status: 503))
        }
    }

    @Test("A failing fallback gives the original error")
    func aFallbackThatFailsHasNone() async throws {
        let other = LoopbackAsset(size: 1_000_000)
        try await cache(standIn(other)).run { cache in
            _ = try await cache.body(of: "b.mp4", 100..<110)
            bench.upstream.serve("/b.mp4") { _ in .response(status: 500) }
            let error = await #expect(throws: ReadFailure.self) { try await read(cache) }

            #expect(error?.error.code == .upstreamRefused(status: 503))
            #expect(bench.upstream.requests(for: "/a.mp4").count == 1)
        }
    }

    // MARK: Failures

    @Test("A read timeout is answered with the fallback")
    func aReadThatTakesTooLongIsAnsweredWithIt() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        bench.upstream.serve("/a.mp4", LoopbackAsset(size: 1000, faults: [.stallBeforeHead(until: latch)]))
        try await cache().run { cache in
            let read = try await cache.reader.read(
                Bench.media, request: ContentRequest(), options: ReadOptions(timeout: .milliseconds(50)))
            read.finish(.clientGone)

            #expect(read.outcome.detail == "fallback" && read.plan.contentLength == 300_000)
        }
    }

    @Test("A negative cache hit is answered with the fallback")
    func aRefusalThatIsRepeatedUnaskedIsAnsweredWithItToo() async throws {
        bench.upstream.serve("/a.mp4") { _ in .response(status: 404, headers: ["Cache-Control": "max-age=60"]) }
        try await cache().run { cache in
            for _ in 0..<2 { #expect(try await read(cache).bytes.isSame(as: notice)) }
            let figures = try await cache.statistics.snapshot().all

            #expect(bench.upstream.requests.count == 1)
            #expect(figures.count(.error) == 2 && figures.count(.negative) == 0)
        }
    }

    @Test("An unsatisfiable range is not answered with the fallback")
    func aRangeThatIsNowhereIsTheReadersOwnMistake() async throws {
        bench.upstream.serve("/a.mp4", bench.asset)
        try await cache().run { cache in
            let error = await #expect(throws: CacheError.self) {
                try await cache.body(of: "a.mp4", 9_000_000..<9_000_001)
            }

            #expect(error?.code == .rangeNotSatisfiable(length: bench.asset.size))
        }
    }
}
