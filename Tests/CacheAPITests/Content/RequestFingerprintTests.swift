import NIOCore
import NIOEmbedded
import NIOHTTP1
import TestChance
import Testing

@testable import CacheAPI

/// The scan of request heads before they are decoded.
@Suite struct RequestFingerprintTests {
    private static let head =
        "GET /o/media/a.mp4?x=1 HTTP/1.1\r\nHost: localhost\r\nUser-Agent: player\r\nRange: bytes=0-5\r\nAccept: */*\r\n\r\n"

    private func fingerprint(_ text: String) -> RequestFingerprint? { RequestFingerprint(ByteBuffer(string: text)) }

    @Test("The value of Range is found without blanks, in any case and place")
    func theRangeIsFound() throws {
        for (line, value) in [
            ("Range: bytes=0-5", "bytes=0-5"), ("rAnGe:bytes=0-5\t ", "bytes=0-5"),
            ("RANGE: \t bytes=0-5", "bytes=0-5"),
            ("X-Range: bytes=1-2", ""), ("Ranges: bytes=1-2", ""), ("Range : bytes=1-2", ""),
        ] {
            let text = Self.head.replacing("Range: bytes=0-5", with: line)
            let found = try #require(fingerprint(text))
            #expect(String(buffer: found.bytes) == text)
            #expect(
                found.bytes.readableBytesView.dropFirst(found.range.lowerBound).prefix(found.range.count)
                    .elementsEqual(value.utf8))
        }
    }

    @Test(
        "Heads that are incomplete, have a body or several ranges, or name something else are not taken",
        arguments: [
            String(head.dropLast(1)), String(head.dropLast(2)), "", "\r\n", "GET /o/", "GET /v1/stats HTTP/1.1\r\n\r\n",
            head.replacing("GET", with: "HEAD"), head.replacing("\r\n", with: "\n"),
            head.replacing("Accept: */*", with: "Content-Length: 1"),
            head.replacing("Accept: */*", with: "TRANSFER-ENCODING: chunked"),
            head.replacing("Accept: */*", with: "range: bytes=1-2"), head.replacing("Accept: */*", with: " folded"),
            head.replacing("Accept: */*", with: "\tfolded"), head.replacing("bytes=0-5", with: ""),
            head.replacing("Accept: */*", with: "Cookie: " + String(repeating: "a", count: 4096)),
        ])
    func otherHeadsAreNotTaken(text: String) {
        #expect(fingerprint(text) == nil)
    }

    @Test("Only the first of several requests is taken")
    func onlyTheFirstIsTaken() throws {
        let found = try #require(fingerprint(Self.head + Self.head))
        #expect(found.bytes.readableBytes == Self.head.utf8.count)
    }

    @Test("Requests that differ outside the range are not the same, whatever the difference")
    func otherRequestsAreNotTheSame() throws {
        let one = try #require(fingerprint(Self.head))
        let same = try #require(fingerprint(Self.head.replacing("bytes=0-5", with: "bytes=100-200")))
        #expect(one.isSame(as: same) && same.isSame(as: one))
        for (place, character) in Self.head.utf8.enumerated() where !one.range.contains(place) {
            var bytes = Array(Self.head.utf8)
            bytes[place] = character ^ 1
            guard let other = RequestFingerprint(ByteBuffer(bytes: bytes)) else { continue }
            #expect(!one.isSame(as: other) && !other.isSame(as: one), "\(place)")
        }
    }

    /// The heads of the requests that NIO's parser finds; nil if it rejects the bytes.
    private func decoded(_ bytes: [UInt8]) -> [HTTPRequestHead]? {
        let channel = EmbeddedChannel(handler: ByteToMessageHandler(HTTPRequestDecoder()))
        defer { _ = try? channel.finish(acceptAlreadyClosed: true) }  // its errors are those of the parser
        guard (try? channel.writeInbound(ByteBuffer(bytes: bytes))) != nil else { return nil }
        var heads: [HTTPRequestHead] = []
        while let part = try? channel.readInbound(as: HTTPServerRequestPart.self) {
            if case .head(let head) = part { heads.append(head) }
        }
        return heads
    }

    @Test("For random mutations the scan agrees with the parser on target and range, or leaves the request to it")
    func theScanAgreesWithTheParser() {
        let (_, seed) = SeededRandom.announced()
        let seeds = [Self.head, Self.head.replacing("Range", with: "range"), Self.head + Self.head].map {
            Array($0.utf8)
        }
        for number in 0..<5_000 as Range<UInt64> {
            let bytes = Mutation.input(number, seed: seed, from: seeds)
            guard let found = RequestFingerprint(ByteBuffer(bytes: bytes)), let head = decoded(bytes)?.first else {
                continue
            }
            let range = found.bytes.readableBytesView.dropFirst(found.range.lowerBound).prefix(found.range.count)
            let values = head.headers["Range"]
            // Invalid UTF-8 is repaired in both.
            #expect(values == (found.range.isEmpty ? [] : [String(decoding: range, as: UTF8.self)]))
            #expect(head.method == .GET && found.hasTarget(head.uri))
            #expect(!head.headers.contains(name: "Content-Length") && !head.headers.contains(name: "Transfer-Encoding"))
        }
    }
}
