import CacheAPI
import CacheCore
import CacheEngine
import CacheTestKit
import Testing

/// The asset changes at the upstream during a response with several ranges.
@Suite(.timeLimit(.minutes(20))) struct GenerationChangeTests {
    /// Response of the upstream to a request for more bytes of the old asset.
    enum Answer: CaseIterable, Sendable {
        /// The whole new asset, as `If-Range` requires.
        case whole
        /// The same range of the new asset, as if there were no `If-Range`.
        case part
        /// 416, because the new asset does not have the range.
        case shorter
    }

    private static let old = LoopbackAsset(size: 3 << 20)
    private static let new = LoopbackAsset(size: 3 << 20, seed: 2, etag: "\"v2\"")

    /// Serves the old asset for ranges before the offset, and the new asset from there on.
    private func change(_ upstream: LoopbackUpstream, from offset: Int64, _ answer: Answer = .whole) {
        upstream.serve("/a.mp4") { request in
            guard let range = Self.range(of: request), range.lowerBound >= offset else { return .asset(Self.old) }
            switch answer {
            case .whole: return .asset(Self.new)
            case .part:
                let place = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(Self.new.size)"
                return .response(
                    status: 206, headers: ["Content-Range": place, "ETag": "\"v2\""], body: Self.new.bytes(range))
            case .shorter: return .response(status: 416, headers: ["Content-Range": "bytes */1000", "ETag": "\"v2\""])
            }
        }
    }

    private static func range(of request: LoopbackRequest) -> ByteRange? {
        guard case .ranges(let specs) = RangeHeader.parse(request.headers.combined("Range")) else { return nil }
        return specs.first?.run(length: old.size)
    }

    private func header(_ parts: [ByteRange]) -> HeaderList {
        ["Range": "bytes=" + parts.map { "\($0.lowerBound)-\($0.upperBound - 1)" }.joined(separator: ",")]
    }

    /// The number of part bytes in a multipart body that may be truncated; nil if a byte differs from the asset.
    private func count(_ parts: [ByteRange], of asset: LoopbackAsset, in body: [UInt8]) -> Int64? {
        var (rest, count) = (body[...], Int64(0))
        for part in parts {
            guard let end = rest.firstRange(of: Array("\r\n\r\n".utf8))?.upperBound else { return count }
            rest = rest[end...]
            let present = min(part.length, Int64(rest.count))
            guard rest.prefix(Int(present)).elementsEqual(asset.bytes(part.prefix(present))) else { return nil }
            rest = rest.dropFirst(Int(present))
            count += present
        }
        return count
    }

    /// Reads the body of a multipart response, which must end before its declared length.
    private func cutBody(on connection: RawConnection) async throws -> [UInt8] {
        let head = try #require(await connection.head())
        let length = try #require(head.headers["Content-Length"].flatMap { Int($0) })
        let body = await connection.rest()
        #expect(head.status == 206 && head.headers["Content-Type"]?.hasPrefix("multipart/byteranges") == true)
        #expect(body.count < length)
        return body
    }

    @Test("A generation change between two parts cuts the response", arguments: Answer.allCases, [false, true])
    func aChangeBetweenTwoPartsCutsTheAnswer(_ answer: Answer, isFirstOnDisk: Bool) async throws {
        let parts: [ByteRange] = [0..<100_000, 2_000_000..<2_100_000]
        try await TestService.run { (service) async throws in
            change(service.upstream, from: 1_000_000, answer)
            if isFirstOnDisk { _ = try await service.call("GET", "/o/media/a.mp4", header([parts[0]])) }
            let connection = try await RawConnection(port: service.port)
            try await connection.request("GET", "/o/media/a.mp4", header(parts))
            let body = try await cutBody(on: connection)

            #expect(count(parts, of: Self.old, in: body) == 100_000)
            service.upstream.serve("/a.mp4", Self.new)
            let whole = try await service.call("GET", "/o/media/a.mp4", header(parts))
            #expect(whole.status == 206 && count(parts, of: Self.new, in: whole.body) == 200_000)
        }
    }

    @Test("A generation change within a part cuts the response there")
    func aChangeWithinAPartCutsTheAnswerThere() async throws {
        let parts: [ByteRange] = [0..<100_000, 1_000_000..<3_000_000]
        try await TestService.run { (service) async throws in
            // Cached bytes in the middle of the second part: the part is fetched in two windows.
            service.upstream.serve("/a.mp4", Self.old)
            _ = try await service.call("GET", "/o/media/a.mp4", header([1_400_000..<1_600_000]))
            change(service.upstream, from: 1_600_000)
            let connection = try await RawConnection(port: service.port)
            try await connection.request("GET", "/o/media/a.mp4", header(parts))
            let body = try await cutBody(on: connection)

            let sent = try #require(count(parts, of: Self.old, in: body))
            #expect(sent >= 100_000 && sent < 2_100_000)
        }
    }

    @Test("A generation change found by another reader is not mixed in")
    func aChangeThatAnotherReaderFindsIsNotMixedIn() async throws {
        let parts: [ByteRange] = [0..<100_000, 2_000_000..<2_100_000]
        let latch = LoopbackLatch()
        defer { latch.release() }
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", Self.old)
            service.upstream.failNext("/a.mp4", .stall(after: 50_000, until: latch))
            let connection = try await RawConnection(port: service.port)
            try await connection.request("GET", "/o/media/a.mp4", header(parts))
            await latch.reached()
            service.upstream.serve("/a.mp4", Self.new)
            let other = try await service.call("GET", "/o/media/a.mp4", header([2_000_000..<2_100_000]))
            latch.release()
            let body = try await cutBody(on: connection)
            let isNew = other.body == Self.new.bytes(2_000_000..<2_100_000)

            #expect(isNew)
            #expect(try #require(count(parts, of: Self.old, in: body)) <= 100_000)
        }
    }
}

extension ByteRange {
    fileprivate func prefix(_ count: Int64) -> ByteRange { lowerBound..<(lowerBound + count) }
}
