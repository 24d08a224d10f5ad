import CacheAPI
import CacheCore
import CacheEngine
import CacheStore
import Foundation

/// A parser of external input, with valid example inputs.
package struct Surface: Sendable {
    package let name: String
    package let seeds: [[UInt8]]
    /// Parses any input without a trap; whether the result satisfies its invariants.
    package let take: @Sendable ([UInt8]) -> Bool

    init(name: String, seeds: [[UInt8]], take: @escaping @Sendable ([UInt8]) -> Bool) {
        self.name = name
        self.seeds = seeds
        self.take = take
    }

    /// A parser of text.
    private init(name: String, seeds: [String], take: @escaping @Sendable (String) -> Bool) {
        self.init(name: name, seeds: seeds.map { Array($0.utf8) }) { take(String(decoding: $0, as: UTF8.self)) }
    }

    private static let now = Timestamp(seconds: 1_795_248_000)
    private static let length: Int64 = 1 << 33

    package static let all: [Surface] = fields + heads + documents + listings + media

    private static let fields = [
        Surface(name: "Range", seeds: ["bytes=0-499,-5,9223372036854775807-", "bytes=1-2, 4-5 ,7-", "items=0-1"]) {
            text in
            switch RangeHeader.parse(text).resolve(length: length) {
            case .runs(let runs):
                runs.allSatisfy { $0.lowerBound >= 0 && $0.lowerBound < $0.upperBound && $0.upperBound <= length }
            case .whole, .unsatisfiable: true
            }
        },
        Surface(name: "PROXY header", seeds: ["PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", "\r\n\r\n\0\r\nQUIT\n! \0\0"]) {
            text in
            switch ProxyHeader.parse(Array(text.utf8)) {
            case .incomplete: text.utf8.count < ProxyHeader.maxBytes
            case .complete(let length, .address(let address)):
                length <= text.utf8.count && NetworkAddress(address.description) == address
            case .complete(let length, .proxy), .complete(let length, .unknown): length <= text.utf8.count
            case .malformed(let reason): reason.hasSuffix(".")
            }
        },
        Surface(
            name: "Forwarded",
            seeds: ["for=\"[2001:db8::1]:80\";proto=https;host=a.example, for=_x", "192.0.2.1, [::1]:8, unknown"]
        ) { text in
            let hops = (try? ForwardedHop.forwarded([text])) ?? (try? ForwardedHop.xForwardedFor([text])) ?? []
            return hops.compactMap(\.address).allSatisfy { NetworkAddress($0.description) == $0 }
        },
        Surface(name: "network", seeds: ["10.0.0.0/8", "2001:db8::/32", "::ffff:192.0.2.1"]) { text in
            NetworkRange(text).map { NetworkRange($0.description) == $0 } ?? true
        },
        Surface(name: "Content-Range", seeds: ["bytes 0-9223372036854775806/*", "bytes */12", "bytes 1-2/3"]) { text in
            guard let range = ContentRange.parse(text) else { return true }
            return ContentRange.parse(range.description) == range
        },
        Surface(
            name: "Cache-Control",
            seeds: ["max-age=\"60\", s-maxage=1, private=\"a, b\", no-cache", "stale-if-error=5"]
        ) { text in
            let isOdd = text.utf8.count % 2 == 1
            if isOdd { _ = RequestDirectives(["Cache-Control": text, "Pragma": text]) }
            return isOdd || CacheControl.parse([text]).maxAge ?? .zero >= .zero
        },
        Surface(
            name: "Want-Repr-Digest",
            seeds: ["sha-256=10, sha-512=5;a=b", "md5=1, sha-512=0", "sha-256=(1 2), sha-512"]
        ) { text in
            guard let chosen = DigestAlgorithm.preferred(in: [text]) else { return true }
            return chosen != .md5 && text.contains(chosen.rawValue + "=")
        },
        Surface(name: "sealed key", seeds: [sealedKey]) { bytes in
            let master = MasterKey(id: "test", key: Array(0..<32))
            let isOpened = SealedKey(masterKey: "test", bytes: Data(bytes)).opened(with: master, of: 1) != nil
            return isOpened == (bytes == sealedKey)
        },
        Surface(name: "entity tag", seeds: ["W/\"a\"", "\"b\""]) { text in
            EntityTag(text).map { EntityTag($0.description) == $0 } ?? true
        },
        Surface(
            name: "date",
            seeds: [
                "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
                "2026-11-21T08:00:00.123+23:59",
            ]
        ) { text in
            let isSame =
                HTTPDate.parse(text, now: now).map { HTTPDate.parse(HTTPDate.format($0), now: now) == $0 } ?? true
            _ = RetryAfter.wait(in: ["Retry-After": text], now: now)
            return isSame && (RFC3339.parse(text).map { RFC3339.parse(RFC3339.format($0)) == $0 } ?? true)
        },
        Surface(name: "size, duration", seeds: ["20GiB", "1.5 MB", "250ms", "1h30m", "none"]) { text in
            let size = try? ByteSize.parse(text)
            let duration = try? DurationText.parse(text)
            return (size ?? 0) >= 0 && (duration ?? .zero) >= .zero
        },
        Surface(name: "path", seeds: ["a/%2e%2E/..%2f", "/o/media/%C3%A9/b.mp4?x=1&y=%20", "x?&&a=b=c"]) { text in
            let query = PercentEncoding.normalized(query: text)
            guard text.utf8.count < 1 << 16 else { return true }
            guard PercentEncoding.normalized(query: query) == query else { return false }
            guard let path = PercentEncoding.normalized(path: text) else { return true }
            return PercentEncoding.normalized(path: path) == path
        },
        Surface(name: "media type", seeds: ["video/mp4; codecs=\"avc1\"", "application/octet-stream"]) { text in
            _ = MediaType.effectiveType(header: text, path: text)
            _ = MediaType.uniformTypeIdentifier(type: text, path: text)
            return true
        },
        Surface(name: "address", seeds: ["http://127.0.0.1:80/a", "https://[::ffff:10.0.0.1]/", "media.example"]) {
            text in
            _ = HostPatterns([text])
            return BaseURL.isSameServer(text, text) || !BaseURL.isSameServer(text, text)
        },
        Surface(name: "cursor", seeds: ["YXNzZXRzIDEyIGFi", "am9icyAtMSA", "a_-b"]) { text in
            let cursor = try? PageCursor(text, list: "assets")
            return cursor.map { $0.text == text } ?? true
        },
        Surface(name: "credentials file", seeds: ["Authorization: Bearer abc\r\n# c\nX-Key: 1\n"]) { text in
            ((try? CredentialsText.parse(Array(text.utf8)))?.fields ?? []).allSatisfy { !$0.value.utf8.contains(10) }
        },
    ]

    private static let heads = [
        Surface(
            name: "request head",
            seeds: [
                "Range: bytes=0-1\nIf-Range: \"a\"\nIf-None-Match: *, W/\"b\"",
                "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\nIf-Match: \"b\"\nCache-Control: no-cache",
            ]
        ) { text in
            let generation = Generation(
                length: length, validators: Validators(entityTag: EntityTag("\"b\"")), receivedAt: now)
            let plan = ContentPlan.make(
                ContentRequest(headers: headers(text)), generation: generation, now: now, boundary: "B")
            let isInside = plan.neededRanges.allSatisfy { $0.lowerBound >= 0 && $0.upperBound <= length }
            return isInside && [200, 206, 304, 412, 416].contains(plan.status)
        },
        Surface(
            name: "response head",
            seeds: [
                "Content-Range: bytes 0-99/200\nETag: \"a\"\nDate: Sun, 06 Nov 1994 08:49:37 GMT\nAge: 5\nVary: Accept",
                "Content-Length: 18446744073709551615\nCache-Control: max-age=1\nLast-Modified: x\nConnection: close, a",
            ]
        ) { text in
            let expectation = WindowExpectation(
                window: .closed(0..<100), known: nil, now: now, freshness: .respect, path: "a.mp4")
            let head = UpstreamHead(status: [200, 206, 304, 416][text.utf8.count % 4], headers: headers(text))
            guard case .window(let run, _) = ResponseVerdict.judge(head, expecting: expectation) else { return true }
            return run.lowerBound == 0 && run.upperBound <= 100
        },
    ]

    private static let documents = [
        Surface(
            name: "JSON",
            seeds: [
                "{\"a\": [1, -2.5e3, \"x\\u00e9\\ud83d\\ude00\", null, true, {}], \"b\": {\"c\": []}}",
                "{\"origin\": \"media\", \"prefix\": \"a/\", \"soft\": true}",
                "{\"items\": [{\"url\": \"http://a/b\", \"ranges\": [{\"offset\": 0, \"length\": 5}]}], \"priority\": 1}",
                "{\"baseURL\": \"http://a\", \"headers\": {\"X-A\": \"1\"}, \"freshness\": {\"ttlSeconds\": 60}, \"keyQuery\": \"all\"}",
                "{\"pinned\": true, \"tags\": [\"a\"], \"ttlSeconds\": null}", "{\"freeBytes\": 1, \"dryRun\": true}",
            ]
        ) { text in
            guard let json = try? JSONParser.parse(text.utf8) else { return true }
            _ = try? AssetPatch(json)
            _ = try? CreateJobRequest(json, fingerprint: "f")
            _ = try? OriginSettings(json, name: "media", present: nil)
            _ = try? ScrubRequest(json)
            return text.utf8.count >= 1 << 16 || (try? JSONParser.parse(json.text.utf8)) == json
        }
    ]

    /// The bytes 32 to 63 as the key of the file 1, sealed with the master key of the bytes 0 to 31.
    private static let sealedKey = Array(
        Data(base64Encoded: "AAECAwQFBgcICQoLZyP0OOHA5DylaL2gncRWQrPntQfETmlLAF7fviFUPo11s7aP59wNHw4zLsTuv/hg")
            ?? Data())

    /// One header field per line.
    private static func headers(_ text: String) -> HeaderList {
        HeaderList(
            text.utf8.split(separator: 10, maxSplits: 300).map { line in
                let colon = line.firstIndex(of: 58) ?? line.endIndex
                let value = line[colon...].drop { $0 == 58 || $0 == 32 }
                return .init(String(Substring(line[..<colon])), String(Substring(value)))
            })
    }
}
