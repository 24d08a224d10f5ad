@testable import CacheAPI
import CacheCore
import CacheTestKit
import Foundation
import ReaderAccess
import Testing
import WebTokens

/// Signed content URLs over real connections, on both paths.
@Suite(.timeLimit(.minutes(20)), .bothRoads) struct SignedURLTests {
    private static let keys: [SigningKeys.File] = [
        .init(name: "first", content: Array("0123456789abcdef0123456789abcdef".utf8)),
        .init(name: "second.key", content: Array("fedcba9876543210fedcba9876543210".utf8)),
    ]

    /// A service with the protected origin `media`, the tokens `boss` (admin) and `player` (read), and two signing keys.
    private func run(
        grace: Duration = .seconds(600),
        _ body: @Sendable @escaping (TestService, ContentSignatures) async throws -> Void
    ) async throws {
        let signatures = ContentSignatures(
            keys: try SigningKeys(files: Self.keys), rules: ContentSignatures.Rules(grace: grace))
        let access = try TestAccess.rules(
            [
                ("boss", #""scope":"admin""#), ("player", #""scope":"read""#), ("writer", #""scope":"write""#),
                ("signer", #""scope":"sign""#),
                ("show", #""scope":"sign","prefixes":["/o/media/show/"],"maxSignatureSeconds":60"#),
            ], signatures: signatures)
        try await TestService.run(access: access, change: { $0.access = .token }) { (service) async throws in
            for path in ["/show/a.mp4", "/show/b.mp4", "/other/a.mp4", "/showing/a.mp4"] {
                service.upstream.serve(path, LoopbackAsset(size: 30_000))
            }
            try await body(service, signatures)
        }
    }

    private static func sign(
        _ service: TestService, _ body: JSON, as token: String = "boss"
    ) async throws -> String {
        let response = try await service.send(
            "POST", "/v1/signatures", ["Authorization": "Bearer \(token)"], body)
        #expect(response.status == 201, "\(response.text)")
        return try #require(response.json()["url"]?.plain)
    }

    private static func body(
        _ form: String, path: String = "/o/media/show/a.mp4", scope: String = "exact", seconds: Int64 = 60
    ) -> JSON {
        [
            "path": .string(path), "scope": .string(scope), "form": .string(form),
            "expiresInSeconds": .integer(seconds),
        ]
    }

    private static let forms = ["query", "path", "uriSigning"]

    @Test("A signed URL reads content with GET, HEAD and ranges", arguments: forms)
    func aSignedURLReadsContent(form: String) async throws {
        try await run { (service, _) async throws in
            let url = try await Self.sign(service, Self.body(form))
            for _ in 0..<3 {
                let whole = try await service.call("GET", url)
                #expect(whole.status == 200 && whole.body.count == 30_000, "\(whole.text)")
                let part = try await service.call("GET", url, ["Range": "bytes=10-19"])
                #expect(part.status == 206 && part.body == Array(whole.body[10..<20]))
                #expect(try await service.call("HEAD", url).status == 200)
            }
            #expect(try await service.call("GET", "/o/media/show/a.mp4").status == 401)
            // One asset: the signature is no part of the key, and the upstream never sees it.
            #expect(Set(service.upstream.requests.map(\.target)) == ["/show/a.mp4"])
            let list = try await service.call("GET", "/v1/assets", ["Authorization": "Bearer boss"]).json()
            #expect(list["items"]?.array.map { $0["key"]?.plain } == ["/o/media/show/a.mp4"])
        }
    }

    @Test("Other query parameters stay, and are signed", arguments: forms)
    func otherParametersStay(form: String) async throws {
        try await run { (service, _) async throws in
            let url = try await Self.sign(service, Self.body(form, path: "/o/media/show/a.mp4?v=2&w=3"))
            #expect(try await service.call("GET", url).status == 200)
            #expect(service.upstream.requests.map(\.target) == ["/show/a.mp4?v=2&w=3"])
            let changed = url.replacing("v=2", with: "v=4")
            #expect(try await service.call("GET", changed).status == 403)
        }
    }

    @Test("A prefix covers its directory only", arguments: forms)
    func aPrefixCoversItsDirectory(form: String) async throws {
        try await run { (service, _) async throws in
            let url = try await Self.sign(service, Self.body(form, scope: "prefix"))
            for (path, status) in [
                ("show/a.mp4", 200), ("show/b.mp4", 200), ("other/a.mp4", 403), ("showing/a.mp4", 403),
                ("show/../other/a.mp4", 403), ("show/%2E%2E/other/a.mp4", 403), ("show/..%2Fother/a.mp4", 403),
                ("show%2F..%2Fother/a.mp4", 403), ("sho%77/b.mp4", 200), ("show/..%5Cother/a.mp4", 403),
            ] {
                for _ in 0..<2 {
                    let response = try await service.call("GET", url.replacing("show/a.mp4", with: path))
                    #expect(response.status == status, "\(path): \(response.text.prefix(300))")
                    if status == 403 { #expect(try response.json()["code"] == "tokenScope") }
                }
            }
        }
    }

    @Test("A signature permits nothing but content", arguments: forms)
    func aSignaturePermitsContentOnly(form: String) async throws {
        try await run { (service, _) async throws in
            let url = try await Self.sign(service, Self.body(form, scope: "prefix"))
            let query = url.drop { $0 != "?" }
            for path in ["/v1/stats", "/v1/assets", "/v1/content", "/metrics"] {
                #expect(try await service.call("GET", path + query).status == 401, "\(path)")
            }
            let token = url.split(separator: "/").dropFirst().first ?? ""
            for path in ["/t/\(token)/v1/stats", "/t/\(token)", "/t/\(token)/", "/t/\(token)//v1/stats"] {
                #expect(try await service.call("GET", path).status == 404, "\(path)")
            }
            for method in ["DELETE", "POST", "PUT", "PATCH"] {
                #expect(try await service.call(method, url).status == 405)
            }
            #expect(try await service.call("OPTIONS", url).status == 204)
        }
    }

    @Test("Every altered character of a signature is refused", arguments: forms)
    func everyAlteredCharacterIsRefused(form: String) async throws {
        try await run { (service, _) async throws in
            let url = try await Self.sign(service, Self.body(form))
            #expect(try await service.call("GET", url).status == 200)
            var (start, end) = (url.startIndex, url.endIndex)
            if form == "path" {
                start = url.index(start, offsetBy: 3)
                end = try #require(url.firstRange(of: "/o/")).lowerBound
            } else {
                start = url.index(after: try #require(url.firstIndex(of: "?")))
            }
            let connection = try await RawConnection(port: service.port)
            for index in url.indices[start..<end] {
                let other: Character = url[index] == "A" ? "B" : "A"
                var altered = url
                altered.replaceSubrange(index...index, with: String(other))
                try await connection.request("GET", altered)
                let response = try #require(try await connection.response())
                // Without the exact names the parameters are no signature.
                #expect([401, 403].contains(response.status), "\(altered): \(response.status)")
            }
            var others = [String(url.dropLast()), url + "A"]
            others.append(url.replacing("show/a", with: "show/b"))
            others.append(url.replacing("/o/media", with: "/o/medio"))
            for altered in others {
                try await connection.request("GET", altered)
                let response = try #require(try await connection.response())
                #expect(response.status == 403, "\(altered): \(response.status)")
            }
            try await connection.hangUp()
        }
    }

    @Test("Repeated and mixed signatures are refused or ignored, never passed on")
    func repeatedParametersAreRefused() async throws {
        try await run { (service, _) async throws in
            let url = try await Self.sign(service, Self.body("query"))
            let other = try await Self.sign(service, Self.body("query", path: "/o/media/show/b.mp4"))
            let package = try await Self.sign(service, Self.body("uriSigning"))
            let query = url.split(separator: "?")[1]
            let additions = ["&\(query)", "&exp=99999999999", "&kid=second", "&sig=AAAA", "&prefix=/o/"]
            var targets = additions.map { url + $0 }
            targets.append(other.replacing("show/b.mp4", with: "show/a.mp4"))
            targets.append("\(package)&URISigningPackage=x")
            targets.append("/o/media/show/b.mp4?\(query)")
            for target in targets {
                let response = try await service.call("GET", target)
                #expect(response.status == 403, "\(target)")
                #expect(try response.json()["code"] == "tokenInvalid")
            }
            #expect(service.upstream.requests.isEmpty)
        }
    }

    @Test("A token with the scope sign makes signed URLs and reads nothing", arguments: forms)
    func aTokenThatSigns(form: String) async throws {
        try await run { (service, _) async throws in
            let url = try await Self.sign(service, Self.body(form), as: "signer")
            #expect(try await service.call("GET", url).status == 200)
            for target in ["/o/media/show/a.mp4", "/v1/stats", "/v1/assets", "/version", "/v1/content?url=http://x/"] {
                let response = try await service.call("GET", target, ["Authorization": "Bearer signer"])
                #expect(response.status == 403, "\(target)")
                #expect(try response.json()["code"] == "tokenScope")
            }
            #expect(try await service.call("GET", "/health/ready", ["Authorization": "Bearer signer"]).status == 200)
            let refused = try await service.send(
                "POST", "/v1/signatures", ["Authorization": "Bearer writer"], Self.body(form))
            #expect(refused.status == 403)
        }
    }

    @Test(
        "A limited token signs inside its limits only, and not for long", arguments: forms)
    func aLimitedTokenSigns(form: String) async throws {
        let orders: [(path: String, scope: String, seconds: Int64, status: Int)] = [
            ("/o/media/show/a.mp4", "exact", 60, 201), ("/o/media/show/a.mp4", "prefix", 60, 201),
            ("/o/media/show/deep/", "prefix", 1, 201), ("/o/media/show/a.mp4?v=1", "exact", 60, 201),
            ("/o/media/show/a.mp4", "exact", 61, 403), ("/o/media/other/a.mp4", "exact", 60, 403),
            ("/o/media/show", "prefix", 60, 403), ("/o/media/a.mp4", "prefix", 60, 403),
            ("/o/media/showing/a.mp4", "exact", 60, 403), ("/o/media/show/../other/a.mp4", "exact", 60, 403),
            ("/o/media/show/%2E%2E/a.mp4", "exact", 60, 403), ("/o/other/show/a.mp4", "exact", 60, 403),
        ]
        try await run { (service, _) async throws in
            for order in orders {
                let body = Self.body(form, path: order.path, scope: order.scope, seconds: order.seconds)
                let response = try await service.send("POST", "/v1/signatures", ["Authorization": "Bearer show"], body)
                #expect(response.status == order.status, "\(order): \(response.text)")
                if response.status == 403 { #expect(try response.json()["code"] == "tokenScope") }
            }
        }
    }

    @Test("A package in a path parameter is removed everywhere")
    func aPathParameter() async throws {
        try await run { (service, _) async throws in
            let url = try await Self.sign(service, Self.body("uriSigning", scope: "prefix"))
            let package = String(url.drop { $0 != "?" }.dropFirst())
            for target in [
                "/o/media/show/a.mp4;\(package)", "/o/media/show;\(package)/a.mp4", "/o/media/show/a.mp4%3B\(package)",
            ] {
                for _ in 0..<2 {
                    let response = try await service.call("GET", target)
                    #expect(response.status == 200, "\(target): \(response.text)")
                }
            }
            #expect(try await service.call("GET", "/o/media/other/a.mp4;\(package)").status == 403)
            #expect(Set(service.upstream.requests.map(\.target)) == ["/show/a.mp4"])
            _ = await service.log.line { $0["path"] == "/o/media/other/a.mp4" }
            #expect(
                Set(service.log.requests.compactMap { $0["path"] }).subtracting(["/v1/signatures"]) == [
                    "/o/media/show/a.mp4", "/o/media/other/a.mp4",
                ])
        }
    }

    @Test("A valid cookie beside an invalid one is accepted, and is renewed only with content")
    func cookies() async throws {
        try await run { (service, signatures) async throws in
            func cookie(_ changes: JSON) throws -> String {
                let claims: JSON = [
                    "exp": .integer(service.wallClock.now().seconds + 60), "cdniuc": "regex:.*/o/media/.*",
                    "cdnistt": 1, "cdniets": 30,
                ]
                let key = try SigningKey(secret: Self.keys[0].content, algorithm: .hs256)
                return "URISigningPackage="
                    + (try JSONWebToken.sign(claims.merged(with: changes), header: [.init("kid", "first")], with: key))
            }
            let (good, ended) = (try cookie([:]), try cookie(["exp": 1]))
            let path = "/o/media/show/a.mp4"
            for value in ["\(ended); a=b; \(good)", "\(good);\t\(ended)", "\(good)"] {
                let response = try await service.call("GET", path, ["Cookie": value])
                #expect(response.status == 200, "\(response.text)")
                let renewed = try #require(response.headers["Set-Cookie"])
                #expect(renewed.hasPrefix("URISigningPackage=") && renewed.hasSuffix("; HttpOnly"), "\(renewed)")
            }
            for (name, value, status) in [("Range", "bytes=99999-", 416), ("If-Match", "\"x\"", 412)] {
                let fields = HeaderList([.init("Cookie", good), .init(name, value)])
                let response = try await service.call("GET", path, fields)
                #expect(response.status == status)
                #expect(response.headers["Set-Cookie"] == nil)
            }
            let late = try await service.call("GET", path, ["Cookie": "\(ended); \(ended)"])
            #expect(late.status == 403)
            #expect(try late.json()["code"] == "tokenExpired")
            let unknown = try await service.call("GET", path, ["Cookie": good, "Authorization": "Basic eDp5"])
            #expect(unknown.status == 200)
            let own = try await service.call("GET", path, ["Cookie": good, "Authorization": "Bearer signer"])
            #expect(own.status == 403)
        }
    }

    @Test("A renewed cookie is for https only if the client uses it, and its container matches https URIs")
    func cookiesOverTLS() async throws {
        let certificates = try TestCertificates(authorities: ["authority"])
        try certificates.issue(
            "server", subject: "/CN=localhost", alternatives: "DNS:localhost", authority: "authority")
        let tls = APISettings.TLS(
            certificateFile: certificates.path("server.pem"), keyFile: certificates.path("server.key"))
        let signatures = ContentSignatures(keys: try SigningKeys(files: Self.keys))
        let access = try TestAccess.rules([("boss", #""scope":"admin""#)], signatures: signatures)
        try await TestService.run(access: access, tls: tls, change: { $0.access = .token }) { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 1000))
            let claims: JSON = [
                "exp": .integer(service.wallClock.now().seconds + 60), "cdnistt": 1, "cdniets": 30,
                "cdniuc": #"regex:https://localhost/o/media/.*"#,
            ]
            let key = try SigningKey(secret: Self.keys[0].content, algorithm: .hs256)
            let token = try JSONWebToken.sign(claims, header: [.init("kid", "first")], with: key)
            let context = try certificates.client(nil, trusting: "authority")
            let connection = try await RawConnection(port: service.port, tls: context)
            let fields: HeaderList = ["Cookie": "URISigningPackage=\(token)", "Host": "localhost:443"]
            try await connection.request("GET", "/o/media/a.mp4", fields)
            let response = try #require(try await connection.response())
            #expect(response.status == 200, "\(response.text)")
            #expect(response.headers["Set-Cookie"]?.hasSuffix("; HttpOnly; Secure") ?? false)
            try await connection.hangUp()
        }
    }

    @Test("An expired signature is refused, except for a reader that began before", arguments: ["query", "path"])
    func anExpiredSignatureIsRefused(form: String) async throws {
        try await run { (service, _) async throws in
            let begun = try await Self.sign(service, Self.body(form, scope: "prefix"))
            let unused = try await Self.sign(service, Self.body(form, path: "/o/media/show/b.mp4"))
            #expect(try await service.call("GET", begun, ["Range": "bytes=0-9"]).status == 206)
            service.wallClock.advance(by: .seconds(61))
            #expect(try await service.call("GET", begun, ["Range": "bytes=10-19"]).status == 206)
            let late = try await service.call("GET", unused)
            #expect(late.status == 403)
            #expect(try late.json()["code"] == "tokenExpired")
            #expect(try late.json()["type"] == "urn:larder:problem:tokenExpired")
            // The grace is for the same asset.
            let next = try await service.call("GET", begun.replacing("show/a.mp4", with: "show/b.mp4"))
            #expect(next.status == 403)
            service.wallClock.advance(by: .seconds(600))
            #expect(try await service.call("GET", begun).status == 403)
        }
    }

    @Test("A removed key ends its signatures at once", arguments: forms)
    func aRemovedKeyEndsItsSignatures(form: String) async throws {
        try await run { (service, signatures) async throws in
            let url = try await Self.sign(service, Self.body(form))
            let connection = try await RawConnection(port: service.port)
            for _ in 0..<3 {
                try await connection.request("GET", url)
                #expect(try await connection.response()?.status == 200)
            }
            signatures.update(keys: try SigningKeys(files: Array(Self.keys.prefix(1))))
            try await connection.request("GET", url)
            #expect(try await connection.response()?.status == 403)
            try await connection.hangUp()
        }
    }

    @Test("No signature reaches a log, a problem, the statistics or Cache-Status", arguments: forms)
    func noSignatureIsTold(form: String) async throws {
        try await run { (service, _) async throws in
            let url = try await Self.sign(service, Self.body(form, path: "/o/media/show/a.mp4?v=1"))
            let secret: Substring
            switch form {
            case "path": secret = url.split(separator: "/")[1]
            case "query": secret = url.split(separator: "sig=")[1]
            default: secret = url.split(separator: "URISigningPackage=")[1]
            }
            #expect(secret.utf8.count > 40)
            var texts: [String] = []
            var targets = [url, url, url + "x"]
            targets.append(url.replacing("show/a", with: "show/b"))
            targets.append(url.replacing("/o/", with: "/x/"))
            targets += ["/" + url, "/%74" + url.dropFirst(2), "/T" + url.dropFirst(2), "/./" + url.dropFirst()]
            targets += [url.replacing("/o/", with: "%2Fo/"), "/x" + url, "http://localhost/" + url]
            for target in targets {
                let response = try await service.call(
                    "GET", target, ["Range": "bytes=0-9", "Referer": "http://localhost" + url])
                texts.append(response.headers.fields.map { "\($0.name): \($0.value)" }.joined(separator: "\n"))
                if response.status >= 400 { texts.append(response.text) }
            }
            for path in ["/v1/stats", "/v1/stats/top", "/metrics", "/v1/assets", "/v1/events", "/v1/fills"] {
                texts.append(try await service.call("GET", path, ["Authorization": "Bearer boss"]).text)
            }
            _ = await service.log.line { $0["path"] == "/v1/fills" }
            texts += service.log.requests.map { "\($0)" }
            texts += service.upstream.requests.map { "\($0)" }
            #expect(texts.filter { $0.contains(secret) } == [])
            #expect(texts.filter { $0.contains(secret.prefix(40)) } == [])
            if form != "uriSigning" { #expect(texts.filter { $0.contains("exp=") } == []) }
            let told = service.log.requests.filter { $0["path"] == "/o/media/show/a.mp4" }
            #expect(told.count >= 3)
            #expect(told.compactMap { $0["token"] }.allSatisfy { $0.hasPrefix("url:") })
        }
    }

    @Test("Signatures need the scope sign and a valid order")
    func onlyValidOrdersAreSigned() async throws {
        try await run { (service, _) async throws in
            func status(_ body: JSON, _ token: String = "boss") async throws -> (Int, JSON?) {
                let response = try await service.send(
                    "POST", "/v1/signatures", ["Authorization": "Bearer \(token)"], body)
                return (response.status, try response.json()["field"])
            }
            #expect(try await status(Self.body("query"), "player").0 == 403)
            #expect(try await status(["path": "/o/media/a", "expiresInSeconds": 1, "kid": "first"]).0 == 201)
            let faults: [(JSON, String)] = [
                (["expiresInSeconds": 1], "path"), (["path": "/o/media/a"], "expiresInSeconds"),
                (["path": "/o/media/a", "expiresInSeconds": 0], "expiresInSeconds"),
                (["path": "/o/media/a", "expiresInSeconds": 1, "expiresAt": "2099-01-01T00:00:00Z"], "expiresAt"),
                (["path": "/o/media/a", "expiresAt": "2001-01-01T00:00:00Z"], "expiresAt"),
                (["path": "/v1/stats", "expiresInSeconds": 1], "path"),
                (["path": "/o/media/../a", "expiresInSeconds": 1], "path"),
                (["path": "/o/media/a", "expiresInSeconds": 1, "kid": "none"], "kid"),
                (["path": "/o/media/a", "expiresInSeconds": 1, "scope": "all"], "scope"),
                (["path": "/o/media/a", "expiresInSeconds": 1, "form": "cookie"], "form"),
                (["path": "/o/media/a", "expiresInSeconds": 1, "extra": 1], "extra"),
            ]
            for (body, field) in faults {
                let (code, name) = try await status(body)
                #expect(code == 422 && name == .string(field), "\(body.text): \(code) \(name?.text ?? "")")
            }
        }
    }

    @Test("Without keys, upstream parameters named like a signature stay")
    func withoutKeysParametersStay() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 100))
            #expect(try await service.call("GET", "/o/media/a.mp4?exp=1&kid=k&sig=s").status == 200)
            #expect(service.upstream.requests.map(\.target) == ["/a.mp4?exp=1&kid=k&sig=s"])
            let signed = try await service.call("GET", "/t/AAAA/o/media/a.mp4")
            #expect(signed.status == 403)
            #expect(try signed.json()["instance"] == "/o/media/a.mp4")
            #expect(
                try await service.send("POST", "/v1/signatures", Self.body("query")).status == 409)
        }
    }

    @Test("A playlist below a path token keeps it for relative URIs")
    func relativeURIsInheritThePathToken() async throws {
        try await run { (service, _) async throws in
            let playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nsegments/1.ts\n#EXT-X-ENDLIST\n"
            var file = LoopbackAsset(
                size: Int64(playlist.utf8.count), contentType: "application/vnd.apple.mpegurl")
            file.content = Array(playlist.utf8)
            service.upstream.serve("/show/list.m3u8", file)
            service.upstream.serve("/show/segments/1.ts", LoopbackAsset(size: 1000))
            let url = try await Self.sign(
                service, Self.body("path", path: "/o/media/show/list.m3u8", scope: "prefix"))
            let list = try await service.call("GET", url)
            #expect(list.text == playlist)
            let base = try #require(URL(string: "http://127.0.0.1:\(service.port)\(url)"))
            let segment = try #require(URL(string: "segments/1.ts", relativeTo: base)?.absoluteURL.path)
            #expect(try await service.call("GET", segment).status == 200)
        }
    }

    @Test("A package in a cookie reads its content only")
    func aPackageInACookieReadsContent() async throws {
        try await run { (service, _) async throws in
            let url = try await Self.sign(service, Self.body("uriSigning"))
            let cookie = "x=1; " + url.split(separator: "?")[1]
            for _ in 0..<3 {
                #expect(try await service.call("GET", "/o/media/show/a.mp4", ["Cookie": cookie]).status == 200)
            }
            #expect(try await service.call("GET", "/o/media/show/b.mp4", ["Cookie": cookie]).status == 403)
            #expect(try await service.call("GET", "/v1/stats", ["Cookie": cookie]).status == 401)
            let both: HeaderList = ["Cookie": "URISigningPackage=broken", "Authorization": "Bearer player"]
            #expect(try await service.call("GET", "/o/media/show/a.mp4", both).status == 200)
        }
    }
}
