import CacheCore
import Testing

/// The lifetime of playlists whose responses state none.
@Suite struct PlaylistFreshnessTests {
    private static let now = Timestamp(seconds: 784_111_777)
    private static let old: HeaderList = ["Last-Modified": "Sun, 06 Nov 1983 08:49:37 GMT"]
    private static let live = Duration.seconds(3)

    private func described(
        _ headers: HeaderList, path: String = "/live.m3u8", freshness: OriginSettings.Freshness = .respect
    ) -> Generation {
        Generation.described(
            by: UpstreamHead(status: 200, headers: headers),
            expecting: WindowExpectation(
                window: .whole, known: nil, now: Self.now, freshness: freshness, path: path),
            length: 100, acceptsRanges: nil)
    }

    /// The lifetime before and after the text is known.
    private func lifetimes(_ generation: Generation, _ updateInterval: Duration?) -> [Duration?] {
        var applied = generation
        applied.apply(updateInterval: updateInterval)
        return [generation, applied].map { $0.freshUntil?.since(Self.now) }
    }

    @Test("A live playlist is fresh until its next update, any other text for the heuristic lifetime")
    func heuristic() {
        let day = Duration.seconds(86_400)
        #expect(lifetimes(described(Self.old), Self.live) == [.milliseconds(500), .seconds(3)])
        #expect(lifetimes(described(Self.old), nil) == [.milliseconds(500), day])
        #expect(lifetimes(described([:]), Self.live) == [.milliseconds(500), .seconds(3)])
        #expect(lifetimes(described([:]), nil) == [.milliseconds(500), nil])
        let named: HeaderList = ["Content-Type": "application/dash+xml"]
        #expect(lifetimes(described(named, path: "/a"), Self.live) == [.milliseconds(500), .seconds(3)])
    }

    @Test(
        "A stated lifetime and the setting of the origin take precedence",
        arguments: [
            ["Cache-Control": "max-age=60"], ["Expires": "Sun, 06 Nov 1994 08:50:37 GMT"],
            ["CDN-Cache-Control": "max-age=60"],
        ] as [HeaderList])
    func stated(headers: HeaderList) {
        #expect(lifetimes(described(headers), Self.live) == [.seconds(60), .seconds(60)])
    }

    @Test("Other files and other settings keep their rules")
    func others() {
        #expect(lifetimes(described(Self.old, path: "/a.mp4"), Self.live) == [.seconds(86_400), .seconds(86_400)])
        #expect(lifetimes(described(Self.old, freshness: .explicit), Self.live) == [nil, nil])
        let ttl = lifetimes(described(Self.old, freshness: .ttl(.seconds(9))), Self.live)
        #expect(ttl == [.seconds(9), .seconds(9)])
        #expect(lifetimes(described(["Cache-Control": "no-cache"]), Self.live) == [nil, nil])
        #expect(lifetimes(described(["Cache-Control": "no-store"]), Self.live) == [nil, nil])
    }

    @Test("The age above a second reduces the lifetime")
    func age() {
        #expect(lifetimes(described(["Age": "1"]), Self.live) == [.milliseconds(500), .seconds(3)])
        #expect(lifetimes(described(["Age": "3"]), Self.live) == [.milliseconds(-1500), .seconds(1)])
    }
}
