import CacheCore
import CacheEngine
import CacheTestKit
import Testing

@Suite struct ReadTests {
    let directory: TemporaryDirectory
    let upstream: LoopbackUpstream
    let asset = LoopbackAsset(size: 3 << 20)

    init() throws {
        directory = try TemporaryDirectory()
        upstream = try LoopbackUpstream()
        upstream.serve("/a.mp4", asset)
    }

    func makeCache(_ change: (inout OriginSettings) -> Void = { _ in }) throws -> TestCache {
        var origin = TestCache.origin(upstream)
        change(&origin.settings)
        return try TestCache(directory: directory.path, origins: [origin])
    }

    @Test("A cold range costs one request, and the second read costs none")
    func aColdRangeCostsOneRequestAndTheSecondReadNone() async throws {
        try await makeCache().run { cache in
            let cold = try await cache.body(of: "a.mp4", 1000..<5000)
            let warm = try await cache.body(of: "a.mp4", 1000..<5000)

            #expect(cold.status == 206)
            #expect(cold.bytes == asset.bytes(1000..<5000))
            #expect(cold.outcome.requestClass == .miss)
            #expect(warm.bytes == cold.bytes)
            #expect(warm.outcome.requestClass == .hit)
            #expect(upstream.requests.map(\.range) == [1000..<5000])
        }
    }

    /// The wall clock stands still, as between two requests in a millisecond.
    @Test("A response that must be confirmed is confirmed by each later read")
    func eachLaterReadConfirms() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 3 << 20, cacheControl: "no-cache"))
        try await makeCache({ $0.freshness = .respect }).run { cache in
            for count in 1...3 {
                let read = try await cache.body(of: "a.mp4", 1000..<5000)
                #expect(read.bytes == asset.bytes(1000..<5000))
                #expect(read.outcome.requestClass == (count == 1 ? .miss : .revalidated))
                #expect(upstream.requests.count == count)
            }
        }
    }

    @Test("A read of a whole asset is one upstream request")
    func aWholeAssetIsOneRequest() async throws {
        try await makeCache().run { cache in
            let whole = try await cache.body(of: "a.mp4")

            #expect(whole.status == 200)
            #expect(whole.bytes == asset.bytes(0..<asset.size))
            #expect(upstream.requests.map { $0.headers["Range"] } == ["bytes=0-"])
        }
    }

    @Test("Only the gaps of a partly cached range are fetched")
    func onlyTheGapsOfAPartlyCachedRangeAreFetched() async throws {
        try await makeCache { $0.gapMergeBytes = 0 }.run { cache in
            _ = try await cache.body(of: "a.mp4", 2000..<3000)
            let partial = try await cache.body(of: "a.mp4", 1000..<4000)

            #expect(partial.bytes == asset.bytes(1000..<4000))
            #expect(partial.outcome.requestClass == .partial)
            #expect(upstream.requests.first?.range == 2000..<3000)
            #expect(Set(upstream.requests.dropFirst().map(\.range)) == [1000..<2000, 3000..<4000])
        }
    }

    @Test("Suffix ranges and range sets are answered")
    func aSuffixAndARangeSetAreAnswered() async throws {
        try await makeCache().run { cache in
            let suffix = try await cache.body(of: "a.mp4", headers: ["Range": "bytes=-100"])
            let set = try await cache.body(of: "a.mp4", headers: ["Range": "bytes=0-9,100-109"])

            #expect(suffix.bytes == asset.bytes((asset.size - 100)..<asset.size))
            #expect(set.status == 206)
            #expect(String(decoding: set.bytes, as: UTF8.self).contains("Content-Range: bytes 100-109/\(asset.size)"))
        }
    }

    @Test("Concurrent readers of one gap share one transfer")
    func concurrentReadersOfOneGapShareOneTransfer() async throws {
        try await makeCache().run { cache in
            let bodies = try await withThrowingTaskGroup(of: [UInt8].self) { group in
                for _ in 0..<20 { group.addTask { try await cache.body(of: "a.mp4", 0..<400_000).bytes } }
                return try await group.reduce(into: []) { $0.append($1) }
            }

            #expect(bodies.allSatisfy { $0 == asset.bytes(0..<400_000) })
            #expect(upstream.requestedBytes("/a.mp4") == 400_000)
        }
    }

    @Test("A broken transfer resumes from the next missing byte")
    func aBrokenTransferResumesFromTheNextMissingByte() async throws {
        upstream.failNext("/a.mp4", .cut(after: 100_000))
        try await makeCache().run { cache in
            let read = try await cache.body(of: "a.mp4", 0..<300_000)

            #expect(read.bytes == asset.bytes(0..<300_000))
            #expect(upstream.requests.map(\.range) == [0..<300_000, 100_000..<300_000])
        }
    }

    @Test("Bytes read before a restart are a hit after it")
    func whatWasReadBeforeARestartIsAHitAfterIt() async throws {
        try await makeCache().run { cache in _ = try await cache.body(of: "a.mp4", 10..<2_000_000) }
        try await makeCache().run { cache in
            let again = try await cache.body(of: "a.mp4", 10..<2_000_000)

            #expect(again.bytes == asset.bytes(10..<2_000_000))
            #expect(again.outcome.requestClass == .hit)
            #expect(upstream.requestedBytes("/a.mp4") == 1_999_990)
        }
    }

    @Test("An upstream without ranges serves a range with one transfer")
    func anUpstreamWithoutRangesServesEverybodyByOneTransfer() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 3 << 20, acceptsRanges: false))
        try await makeCache().run { cache in
            let bytes = try await cache.body(of: "a.mp4", 2_000_000..<2_000_100).bytes

            #expect(bytes == asset.bytes(2_000_000..<2_000_100))
            #expect(upstream.requests.count == 1)
        }
    }

    @Test(
        "A body of unknown length is served, and its length is recorded",
        arguments: [LoopbackAsset.Framing.chunked, .untilClose])
    func aBodyOfUnknownLengthIsServedAndItsLengthLearnt(_ framing: LoopbackAsset.Framing) async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 700_000, acceptsRanges: false, framing: framing))
        try await makeCache().run { cache in
            let whole = try await cache.body(of: "a.mp4")
            let range = try await cache.body(of: "a.mp4", 699_000..<700_000)

            #expect(whole.bytes == asset.bytes(0..<700_000))
            #expect(range.status == 206)
            #expect(range.outcome.requestClass == .hit)
        }
    }

    @Test("An asset without validators is never assembled from two transfers")
    func anAssetWithoutValidatorsIsNeverPutTogetherFromTwoTransfers() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 3 << 20, etag: nil, lastModified: nil))
        try await makeCache().run { cache in
            let whole = try await cache.body(of: "a.mp4")

            #expect(whole.bytes == asset.bytes(0..<asset.size))
            #expect(upstream.requests.map { $0.headers["Range"] } == ["bytes=0-"])
        }
    }

    @Test("A changed upstream opens a new generation, and generations never mix")
    func aChangedUpstreamOpensANewGenerationAndNeverMixesTwo() async throws {
        try await makeCache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            let next = LoopbackAsset(size: 3 << 20, seed: 99, etag: "\"v2\"")
            upstream.serve("/a.mp4", next)
            let begunOnOldBytes = await #expect(throws: CacheError.self) {
                try await cache.body(of: "a.mp4", 500..<2000)
            }
            let read = try await cache.body(of: "a.mp4", 500..<2000)

            #expect(begunOnOldBytes?.code == .assetChanged)
            #expect(read.bytes == next.bytes(500..<2000))
        }
    }

    @Test("A read is restarted if its first byte belongs to a new generation")
    func aReadWhoseFirstByteIsOfTheNewGenerationIsBegunAnew() async throws {
        try await makeCache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            let next = LoopbackAsset(size: 3 << 20, seed: 99, etag: "\"v2\"")
            upstream.serve("/a.mp4", next)
            let read = try await cache.body(of: "a.mp4", 1000..<2000)

            #expect(read.bytes == next.bytes(1000..<2000))
        }
    }

    @Test("Stale bytes are confirmed before they are served")
    func staleBytesAreConfirmedBeforeTheyAreServed() async throws {
        let test = try makeCache()
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            test.wallClock.advance(by: .seconds(4000))
            let read = try await cache.body(of: "a.mp4", 0..<1000)

            #expect(read.bytes == asset.bytes(0..<1000))
            #expect(read.outcome.requestClass == .revalidated)
            #expect(upstream.requests.map(\.status) == [206, 304])
        }
    }

    @Test("A range beyond the end is rejected with the length")
    func aRangeBeyondTheEndIsRefusedWithTheLength() async throws {
        try await makeCache().run { cache in
            let unknown = await #expect(throws: CacheError.self) {
                try await cache.body(of: "a.mp4", 9_000_000..<9_000_001)
            }
            _ = try await cache.body(of: "a.mp4", 0..<10)
            let known = try await cache.body(of: "a.mp4", 9_000_000..<9_000_001)

            #expect(unknown?.code == .rangeNotSatisfiable(length: asset.size))
            #expect(known.status == 416)
        }
    }

    @Test("A range refused by the upstream is a miss with its status")
    func aRangeThatTheUpstreamRefusesIsAMissWithItsStatus() async throws {
        try await makeCache().run { cache in
            let failure = await #expect(throws: ReadFailure.self) {
                try await cache.reader.read(
                    Bench.media,
                    request: ContentRequest(headers: ["Range": "bytes=9000000-"]))
            }

            #expect(failure?.outcome.forwarding == .miss)
            #expect(failure?.outcome.upstreamStatus == 416)
        }
    }

    @Test("A missing asset gives the upstream status and is not stored")
    func aMissingAssetIsToldWithItsStatusAndNotKept() async throws {
        try await makeCache().run { cache in
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "none.mp4", 0..<10) }
            let page = try await cache.assets.page(AssetQuery())

            #expect(error?.code == .upstreamRefused(status: 404))
            #expect(page.items.isEmpty)
        }
    }
}
