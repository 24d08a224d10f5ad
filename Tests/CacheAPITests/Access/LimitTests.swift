@testable import CacheAPI
import CacheCore
import CacheEngine
import CacheTestKit
import HTTPTypes
import ReaderAccess
import Testing

/// Readers that are limited to some origins or path prefixes.
@Suite(.timeLimit(.minutes(20))) struct LimitTests {
    /// A service with the protected origin `media` and the tokens `boss` (no limits), `prefix` (below
    /// `/o/media/public/`), `origin` (the origin `media`) and `other` (the origin `other`), all with the scope admin.
    private func run(_ body: @Sendable @escaping (TestService) async throws -> Void) async throws {
        let access = try TestAccess.rules([
            ("boss", #""scope":"admin""#),
            ("prefix", #""scope":"admin","prefixes":["/o/media/public/"]"#),
            ("origin", #""scope":"admin","origins":["media"]"#),
            ("other", #""scope":"admin","origins":["other"]"#),
        ])
        try await TestService.run(access: access, change: { $0.access = .token }) { (service) async throws in
            for path in ["/public/a.mp4", "/secret/a.mp4", "/public-secret/a.mp4"] {
                service.upstream.serve(path, LoopbackAsset(size: 5000))
            }
            try await body(service)
        }
    }

    private static func bearer(_ token: String) -> HeaderList { ["Authorization": "Bearer \(token)"] }

    @Test(
        "Content outside the limits is refused in every spelling", .bothRoads,
        arguments: [
            ("/o/media/public/a.mp4", 200), ("/o/media/%70ublic/a.mp4", 200), ("/o/media/x/../public/a.mp4", 200),
            ("/o/media/secret/a.mp4", 403), ("/o/media/public/../secret/a.mp4", 403),
            ("/o/media/public/%2E%2E/secret/a.mp4", 403), ("/o/media/public-secret/a.mp4", 403),
            ("/o/media/public%2Fa.mp4", 404), ("/o/media//public/a.mp4", 403), ("/o/media/public", 403),
            ("/o/media/PUBLIC/a.mp4", 403), ("/o/media/public/..%2Fsecret/a.mp4", 400),
        ])
    func contentOutsideTheLimitsIsRefused(target: String, status: Int) async throws {
        try await run { (service) async throws in
            // Cached, so that the fast path could answer.
            for path in ["public", "secret", "public-secret"] {
                let path = "/o/media/\(path)/a.mp4"
                for _ in 0..<2 { #expect(try await service.call("GET", path, Self.bearer("boss")).status == 200) }
            }
            for method in ["GET", "HEAD", "GET"] {
                let response = try await service.call(method, target, Self.bearer("prefix"))
                #expect(response.status == status, "\(method) \(response.text)")
                if status == 403, method == "GET" {
                    #expect(try response.json()["code"] == "tokenScope")
                    #expect(response.text.contains("The token prefix is limited"))
                }
            }
        }
    }

    @Test("Prepared responses are never shared between readers")
    func preparedResponsesAreNotShared() async throws {
        try await run { (service) async throws in
            let path = "/o/media/secret/a.mp4"
            let connection = try await RawConnection(port: service.port)
            func status(_ token: String?) async throws -> Int? {
                try await connection.request("GET", path, token.map(Self.bearer) ?? [:])
                return try await connection.response()?.status
            }
            for _ in 0..<4 { #expect(try await status("boss") == 200) }
            for _ in 0..<2 {
                #expect(try await status("prefix") == 403)
                #expect(try await status("other") == 403)
                #expect(try await status("wrong") == 401)
                #expect(try await status(nil) == 401)
                #expect(try await status("boss") == 200)
                #expect(try await status("origin") == 200)
            }
            try await connection.hangUp()
        }
    }

    @Test("Every route refuses or checks limited readers")
    func everyRouteRefusesOrChecksLimitedReaders() async throws {
        try await run { (service) async throws in
            #expect(try await service.call("GET", "/o/media/secret/a.mp4", Self.bearer("boss")).status == 200)
            let list = try await service.call("GET", "/v1/assets", Self.bearer("boss")).json()
            let id = try #require(list["items"]?.array.first?["assetId"]?.plain)
            let job = try await service.send(
                "POST", "/v1/jobs", Self.bearer("boss"), ["items": [["origin": "media", "path": "secret/a.mp4"]]])
            let jobID = try #require(job.json()["jobId"]?.plain)
            let item = "origin=media&path=secret/a.mp4"
            let outside: [String: JSON] = [
                "POST /v1/jobs": ["items": [["origin": "media", "path": "secret/a.mp4"]]],
                "PUT /v1/schedules/{name}": [
                    "repeat": "daily", "job": ["items": [["origin": "media", "path": "secret/a.mp4"]]],
                ],
                "POST /v1/probe": ["origin": "media", "path": "secret/a.mp4"],
                "POST /v1/list": ["origin": "media", "path": "secret/"],
                "POST /v1/purges": ["prefix": "/o/media/", "dryRun": .bool(true)],
                "POST /v1/tokens": ["id": "new", "scope": "read"],
                "POST /v1/signatures": ["path": "/o/media/secret/a.mp4", "expiresInSeconds": 60],
            ]
            for line in RouteTable.lines where line.need.scope != nil {
                var target = line.pattern.replacing("{assetId}", with: id).replacing("{jobId}", with: jobID)
                    .replacing("{origin}", with: "media").replacing("{path}", with: "secret/a.mp4")
                    .replacing("{name}", with: "media")
                if ["/v1/probe", "/v1/explain"].contains(target), line.method == .get { target += "?" + item }
                if target == "/v1/content" { target += "?url=" + service.upstream.url("/secret/a.mp4") }
                let name = "\(line.method.rawValue) \(line.pattern)"
                for token in ["prefix", "other"] {
                    var response: RawResponse
                    if let body = outside[name] {
                        response = try await service.send(line.method.rawValue, target, Self.bearer(token), body)
                    } else {
                        response = try await service.call(line.method.rawValue, target, Self.bearer(token))
                    }
                    switch line.limits {
                    case .unaffected: #expect(response.status == 200, "\(name)")
                    case .checked where ["GET /v1/jobs", "GET /v1/schedules"].contains(name):
                        #expect(try response.json()["items"]?.array.isEmpty == true, "\(name) as \(token)")
                    case .checked where name == "GET /v1/tokens":
                        let ids = try response.json()["items"]?.array.map { $0["id"] }
                        #expect(ids == [.string(token)], "\(name) as \(token)")
                    case .checked where name == "GET /v1/requests":
                        let found = try response.json()["items"]?.array ?? []
                        #expect(response.status == 200 && !found.contains { $0.jsonText.contains("secret") }, "\(name)")
                    default:
                        #expect(response.status == 403, "\(name) as \(token): \(response.text)")
                        if line.method != .head {
                            #expect(try response.json()["code"] == "tokenScope", "\(name) as \(token)")
                        }
                    }
                }
            }
            #expect(try await service.call("GET", "/v1/assets/\(id)", Self.bearer("boss")).status == 200)
        }
    }

    @Test("Jobs, probes, purges, lists and views inside the limits work")
    func requestsInsideTheLimitsWork() async throws {
        try await run { (service) async throws in
            for path in ["public", "secret"] {
                #expect(try await service.call("GET", "/o/media/\(path)/a.mp4", Self.bearer("boss")).status == 200)
            }
            let token = Self.bearer("prefix")
            let inside: JSON = ["origin": "media", "path": "public/a.mp4"]
            let list = try await service.call("GET", "/v1/assets?prefix=/o/media/public/", token).json()
            #expect(list["items"]?.array.count == 1)
            let id = try #require(list["items"]?.array.first?["assetId"]?.plain)
            for view in ["", "/content", "/extents", "/integrity", "/map"] {
                #expect(try await service.call("GET", "/v1/assets/\(id)\(view)", token).status == 200, "\(view)")
            }
            #expect(try await service.send("POST", "/v1/probe", token, inside).status == 200)
            #expect(try await service.call("GET", "/v1/probe?origin=media&path=public/a.mp4", token).status == 200)
            #expect(try await service.call("GET", "/v1/explain?origin=media&path=public/a.mp4", token).status == 200)
            #expect(try await service.call("GET", "/v1/fills?assetId=\(id)", token).status == 200)
            let job = try await service.send("POST", "/v1/jobs", token, ["items": [inside]])
            #expect(job.status == 202)
            let jobID = try #require(job.json()["jobId"]?.plain)
            for view in ["", "/items"] {
                #expect(try await service.call("GET", "/v1/jobs/\(jobID)\(view)", token).status == 200)
            }
            let mixed: JSON = ["items": [inside, ["origin": "media", "path": "secret/a.mp4"]]]
            #expect(try await service.send("POST", "/v1/jobs", token, mixed).status == 403)
            let dryRun: JSON = ["items": [inside], "dryRun": .bool(true)]
            #expect(try await service.send("POST", "/v1/jobs", token, dryRun).json()["files"] == 1)
            let refused = mixed.merged(with: ["dryRun": .bool(true)])
            #expect(try await service.send("POST", "/v1/jobs", token, refused).status == 403)
            let named: JSON = ["items": [["origin": "media", "path": "public/a.mp4", "key": "chosen"]]]
            #expect(try await service.send("POST", "/v1/jobs", token, named).status == 403)
            let queue: JSON = ["items": [inside], "queue": "q", "supersede": .bool(true)]
            #expect(try await service.send("POST", "/v1/jobs", token, queue).status == 403)
            let purge = try await service.send("POST", "/v1/purges", token, ["prefix": "/o/media/public/"])
            #expect(purge.status == 200)
            let left = try await service.call("GET", "/v1/assets", Self.bearer("boss")).json()
            #expect(left["items"]?.array.map { $0["key"]?.plain } == ["/o/media/secret/a.mp4"])
        }
    }

    @Test(
        "A purge must be confined to the limits",
        arguments: [
            (["prefix": "/o/media/"], 403), (["prefix": "/o/media/public"], 403), (["origin": "media"], 403),
            (["tag": "t"], 403), (["patterns": ["/o/media/public/**"]], 200), (["patterns": ["/o/**/a.mp4"]], 403),
            (["patterns": ["/o/media/public/*", "/o/media/*"]], 403), (["keys": ["/o/media/public/a.mp4"]], 200),
            (["keys": ["/o/media/secret/a.mp4"]], 403), (["contentType": "video/mp4"], 403),
            (["keys": ["/o/media/public/a.mp4", "chosen"]], 403), (["urls": ["http://a.example/x"]], 403),
            (["tag": "t", "prefix": "/o/media/public/x"], 200),
        ] as [(JSON, Int)])
    func purgesAreConfined(body: JSON, status: Int) async throws {
        try await run { (service) async throws in
            let response = try await service.send("POST", "/v1/purges", Self.bearer("prefix"), body)
            #expect(response.status == status, "\(response.text)")
        }
    }

    @Test("Public content needs no limit")
    func publicContentIsReadByAll() async throws {
        let access = try TestAccess.rules([("other", #""scope":"read","origins":["other"]"#)])
        try await TestService.run(access: access) { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 100))
            for headers in [Self.bearer("other"), Self.bearer("wrong"), [:]] {
                #expect(try await service.call("GET", "/o/media/a.mp4", headers).status == 200)
            }
            #expect(try await eventually { service.log.requests.map { $0["token"] } == ["other", nil, nil] })
        }
    }

    // MARK: Jobs and plans

    /// Runs a job to its end and returns its document.
    private func finished(_ service: TestService, _ token: String, _ body: JSON) async throws -> JSON {
        try await service.send("POST", "/v1/jobs", ["Authorization": "Bearer \(token)", "Prefer": "wait=20"], body)
            .json()
    }

    @Test("A limited reader lists its own jobs and those inside its limits, and no others")
    func jobsBelongToTheirToken() async throws {
        try await run { (service) async throws in
            let item: @Sendable (String) -> JSON = { ["items": [["origin": "media", "path": .string($0)]]] }
            let inside = try await finished(service, "boss", item("public/a.mp4"))["jobId"]?.plain
            let outside = try await finished(service, "boss", item("secret/a.mp4"))["jobId"]?.plain
            let own = try await finished(service, "prefix", item("%70ublic/a.mp4"))["jobId"]?.plain

            let list = try await service.call("GET", "/v1/jobs", Self.bearer("prefix")).json()
            #expect(list["items"]?.array.map { $0["jobId"]?.plain } == [own, inside])
            let pages = try await service.call("GET", "/v1/jobs?limit=1", Self.bearer("prefix")).json()
            #expect(pages["items"]?.array.map { $0["jobId"]?.plain } == [own])
            let all = try await service.call("GET", "/v1/jobs", Self.bearer("boss")).json()
            #expect(all["items"]?.array.count == 3)
            for (job, status) in [(inside, 200), (outside, 403), (own, 200), ("unknown", 403)] {
                let response = try await service.call("GET", "/v1/jobs/\(job ?? "")", Self.bearer("prefix"))
                #expect(response.status == status)
            }
            #expect(try await service.call("GET", "/v1/jobs?total=true", Self.bearer("prefix")).status == 403)
        }
    }

    @Test("A playlist names no files outside the limits of the job's token, in any spelling")
    func playlistsStayInsideTheLimits() async throws {
        try await run { (service) async throws in
            let base = service.upstream.url("")
            let foreign = [
                "../secret/a.mp4", "/secret/a.mp4", "%2e%2e/secret/a.mp4", "x/..%2f../secret/a.mp4",
                base + "/secret/a.mp4", base.uppercased() + "/secret/a.mp4", base + "/public/../secret/a.mp4",
                "..%2Fsecret%2Fa.mp4",
            ]
            let text =
                "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXT-X-PLAYLIST-TYPE:VOD\n"
                + (["a.mp4"] + foreign).map { "#EXTINF:6,\n\($0)\n" }.joined() + "#EXT-X-ENDLIST\n"
            service.upstream.serve("/public/list.m3u8") { _ in
                .response(
                    status: 200,
                    headers: ["Content-Type": "application/vnd.apple.mpegurl", "Cache-Control": "max-age=60"],
                    body: Array(text.utf8))
            }
            let body: JSON = [
                "items": [
                    ["origin": "media", "path": "public/list.m3u8", "play": ["startSeconds": 0, "seconds": 100]]
                ],
                "pinned": .bool(true), "tags": ["team"],
            ]
            let job = try await finished(service, "prefix", body)
            let id = try #require(job["jobId"]?.plain)
            let items = try await service.call("GET", "/v1/jobs/\(id)/items", Self.bearer("prefix")).json()["items"]?
                .array

            #expect(job["state"]?.plain == "failed", "\(job)")
            #expect(items?.filter { $0["state"]?.plain == "succeeded" }.count == 2)
            #expect(!service.upstream.requests.contains { $0.path.contains("secret") })
            let stored = try await service.call("GET", "/v1/assets?prefix=/o/media/secret/", Self.bearer("boss")).json()
            #expect(stored["items"]?.array.isEmpty == true)
        }
    }

    @Test("A limited reader commits its own plans only, and holds at most eight")
    func plansBelongToTheirToken() async throws {
        try await run { (service) async throws in
            for path in ["public", "secret"] {
                #expect(try await service.call("GET", "/o/media/\(path)/a.mp4", Self.bearer("boss")).status == 200)
            }
            let plan: @Sendable (String, String) async throws -> String? = { token, prefix in
                try await service.send(
                    "POST", "/v1/purges", Self.bearer(token), ["prefix": .string(prefix), "dryRun": .bool(true)]
                ).json()["planId"]?.plain
            }
            let status: @Sendable (String, String?, String) async throws -> Int = { method, plan, end in
                try await service.call(method, "/v1/purges/\(plan ?? "")\(end)", Self.bearer("prefix")).status
            }
            let foreign = try await plan("boss", "/o/media/")
            let inside = try await plan("boss", "/o/media/public/")
            #expect(try await status("GET", foreign, "") == 403)
            #expect(try await status("POST", foreign, "/commit") == 403)
            #expect(try await status("DELETE", foreign, "") == 403)
            #expect(try await status("GET", inside, "") == 200)

            let empty = try await plan("boss", "/o/media/nothing/")
            for (method, end) in [("GET", ""), ("POST", "/commit"), ("DELETE", "")] {
                #expect(try await status(method, empty, end) == 403)
            }

            let first = try await plan("prefix", "/o/media/public/")
            var last: String?
            for _ in 0..<8 { last = try await plan("prefix", "/o/media/public/") }
            #expect(try await status("GET", first, "") == 403)
            #expect(try await status("GET", inside, "") == 200)
            #expect(try await status("POST", last, "/commit") == 200)
            let left = try await service.call("GET", "/v1/assets", Self.bearer("boss")).json()
            #expect(left["items"]?.array.map { $0["key"]?.plain } == ["/o/media/secret/a.mp4"])
        }
    }

    @Test("Tokens with one Idempotency-Key have a job each")
    func idempotencyKeysBelongToTheirToken() async throws {
        try await run { (service) async throws in
            var jobs: [String?] = []
            for token in ["boss", "prefix", "prefix"] {
                let headers: HeaderList = ["Authorization": "Bearer \(token)", "Idempotency-Key": "k"]
                let body: JSON = ["items": [["origin": "media", "path": "public/a.mp4"]]]
                jobs.append(try await service.send("POST", "/v1/jobs", headers, body).json()["jobId"]?.plain)
            }
            #expect(jobs[0] != jobs[1] && jobs[1] == jobs[2])
        }
    }
}
