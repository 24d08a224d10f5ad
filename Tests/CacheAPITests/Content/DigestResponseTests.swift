import CacheAPI
import CacheCore
import CacheTestKit
import Cryptography
import Foundation
import Testing

/// `Repr-Digest` and `Content-Digest` of content responses (RFC 9530), on all content routes.
@Suite(.bothRoads, .timeLimit(.minutes(20))) struct DigestResponseTests {
    private static let asset = LoopbackAsset(size: 300_000, contentType: "video/mp4")
    private static let both: HeaderList = ["Want-Content-Digest": "sha-256=1", "Want-Repr-Digest": "sha-512=1"]

    private static func sha256(_ bytes: [UInt8]) -> String {
        "sha-256=:\(Data(HashFunction.sha256.digest(of: bytes)).base64EncodedString()):"
    }

    private static let whole = asset.bytes(0..<asset.size)
    private static let representation = "sha-512=:\(Data(HashFunction.sha512.digest(of: whole)).base64EncodedString()):"

    @Test("A cached response has the wanted digests on each route")
    func routes() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", Self.asset)
            let cold = try await service.call("GET", "/o/media/a.mp4", Self.both)
            #expect(cold.headers["Content-Digest"] == nil && cold.headers["Repr-Digest"] == nil)
            let id = try #require(cold.headers["Larder-Asset-Id"])
            let url = service.upstream.url("/a.mp4")
            _ = try await service.call("GET", "/v1/content?url=\(url)")
            for target in ["/o/media/a.mp4", "/v1/assets/\(id)/content", "/v1/content?url=\(url)"] {
                let all = try await service.call("GET", target, Self.both)
                #expect(all.status == 200 && all.headers["Content-Digest"] == Self.sha256(all.body), "\(target)")
                #expect(all.headers.values("Repr-Digest") == [Self.representation], "\(target)")
                let ranged = HeaderList(Self.both.fields + [.init("Range", "bytes=5-99999")])
                let part = try await service.call("GET", target, ranged)
                #expect(part.status == 206 && part.body.isSame(as: Self.asset.bytes(5..<100_000)))
                #expect(part.headers["Content-Digest"] == Self.sha256(part.body), "\(target)")
                #expect(part.headers["Repr-Digest"] == Self.representation, "\(target)")
                let head = try await service.call("HEAD", target, Self.both)
                #expect(head.headers["Repr-Digest"] == Self.representation, "\(target)")
                #expect(head.headers["Content-Digest"] == nil, "\(target)")
            }
        }
    }

    @Test("Responses without content, problems and requests without preferences have no digest")
    func withoutDigest() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", Self.asset)
            _ = try await service.call("GET", "/o/media/a.mp4")
            let fields: [(HeaderList, Int)] = [
                (["If-None-Match": "\"v1\""], 304), (["If-Match": "\"other\""], 412), (["Range": "bytes=300000-"], 416),
            ]
            for (condition, status) in fields {
                let response = try await service.call(
                    "GET", "/o/media/a.mp4", HeaderList(Self.both.fields + condition.fields))
                #expect(response.status == status)
                #expect(response.headers["Content-Digest"] == nil && response.headers["Repr-Digest"] == nil)
            }
            for value in ["", "md5=10", "sha-256=0", "sha-256=11", "a=b=c", "sha-256=1,"] {
                let response = try await service.call(
                    "GET", "/o/media/a.mp4", ["Want-Content-Digest": value, "Want-Repr-Digest": value])
                #expect(response.status == 200 && response.body.isSame(as: Self.whole), "\(value)")
                #expect(response.headers["Content-Digest"] == nil && response.headers["Repr-Digest"] == nil)
            }
        }
    }

    @Test("Responses with digests do not become those of other clients on one connection")
    func persistentConnection() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", Self.asset)
            _ = try await service.call("GET", "/o/media/a.mp4")
            let connection = try await RawConnection(port: service.port)
            for wants in [true, true, false, true, false, false, true] {
                for range in [0..<1000, 1000..<200_000] {
                    var headers: HeaderList = ["Range": "bytes=\(range.lowerBound)-\(range.upperBound - 1)"]
                    if wants { headers.set("Want-Content-Digest", "sha-256=10") }
                    try await connection.request("GET", "/o/media/a.mp4", headers)
                    let response = try #require(try await connection.response())
                    let expected = Self.asset.bytes(Int64(range.lowerBound)..<Int64(range.upperBound))
                    #expect(response.status == 206 && response.body.isSame(as: expected))
                    #expect(response.headers["Content-Digest"] == (wants ? Self.sha256(expected) : nil))
                }
            }
            try await connection.hangUp()
        }
    }
}
