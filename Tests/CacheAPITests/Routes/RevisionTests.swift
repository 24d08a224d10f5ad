import CacheAPI
import CacheCore
import CacheEngine
import CacheTestKit
import Testing

/// Preconditions of requests for documents with a revision.
@Suite(.timeLimit(.minutes(5))) struct RevisionTests {
    private static let json: HeaderList = ["Content-Type": "application/json"]
    private static let origin = #"{"baseURL": "http://a.example", "retries": 7}"#

    private static func fields(_ more: HeaderList) -> HeaderList {
        more.fields.reduce(into: json) { $0.append($1.name, $1.value) }
    }

    @Test("PUT with If-None-Match: * never replaces")
    func aPutThatMayOnlyCreateNeverReplaces() async throws {
        try await TestService.run { (service) async throws in
            let only = Self.fields(["If-None-Match": "*"])
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        try await service.call("PUT", "/v1/origins/new", only, body: Self.origin).status
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses.count { $0 == 201 } == 1 && statuses.count { $0 == 412 } == 19)
            #expect(try await service.call("PUT", "/v1/policy", only, body: "{}").status == 412)
            let tag = try #require(try await service.call("GET", "/v1/origins/new").headers["ETag"])
            for (condition, status) in [(tag, 412), ("\"99999\"", 200)] {
                let fields = Self.fields(["If-None-Match": condition])
                #expect(try await service.call("PUT", "/v1/origins/new", fields, body: Self.origin).status == status)
            }
        }
    }

    @Test("GET with the current ETag gets 304", arguments: ["/v1/policy", "/v1/origins/media"])
    func aGetWithTheCurrentTagIsNotModified(_ path: String) async throws {
        try await TestService.run { (service) async throws in
            let tag = try #require(try await service.call("GET", path).headers["ETag"])
            for condition in [tag, "W/" + tag, "\"99999\", \(tag)", "*"] {
                let response = try await service.call("GET", path, ["If-None-Match": condition])
                #expect(response.status == 304 && response.headers["ETag"] == tag && response.body.isEmpty)
            }
            #expect(try await service.call("HEAD", path, ["If-None-Match": tag]).status == 304)
            #expect(try await service.call("GET", path, ["If-None-Match": "\"99999\""]).status == 200)
            #expect(try await service.call("GET", path, ["If-Match": "\"99999\""]).status == 412)
            #expect(try await service.call("GET", path, ["If-Match": "\"1\", \(tag)"]).status == 200)
        }
    }

    @Test(
        "A missing origin gets 404 under any precondition",
        arguments: [[:], ["If-Match": "\"1\""], ["If-Match": "*"], ["If-None-Match": "*"]] as [HeaderList])
    func aMissingOriginIsNotFoundWhateverTheConditions(_ conditions: HeaderList) async throws {
        try await TestService.run { (service) async throws in
            #expect(try await service.call("GET", "/v1/origins/none", conditions).status == 404)
            #expect(try await service.call("DELETE", "/v1/origins/none", conditions).status == 404)
            let fields = Self.fields(conditions)
            #expect(try await service.call("PATCH", "/v1/origins/none", fields, body: "{}").status == 404)
        }
    }

    @Test("Concurrent patches of different fields all apply")
    func patchesOfDifferentFieldsBothStay() async throws {
        try await TestService.run { (service) async throws in
            #expect(try await service.call("PUT", "/v1/origins/o", Self.json, body: Self.origin).status == 201)
            let patches =
                [
                    #"{"retries": null}"#, #"{"hedging": true}"#, #"{"headers": {"X-A": "secret"}}"#,
                    #"{"timeouts": {"idleSeconds": 9}}"#,
                ] + (0..<16).map { #"{"headers": {"X-\#($0)": "v"}}"# }
            try await withThrowingTaskGroup(of: Int.self) { group in
                for patch in patches {
                    group.addTask {
                        let type: HeaderList = ["Content-Type": "application/merge-patch+json", "If-Match": "*"]
                        return try await service.call("PATCH", "/v1/origins/o", type, body: patch).status
                    }
                }
                for try await status in group { #expect(status == 200) }
            }
            let found = try await service.call("GET", "/v1/origins/o").json()
            #expect(found["retries"] == 3 && found["hedging"] == .bool(true))
            #expect(found["headers"]?["X-A"] == "•••" && found["timeouts"]?["idleSeconds"] == 9)
            #expect(try service.cache.configuration.origin("o").origin.settings.headers["X-A"] == "secret")

            #expect(found["headers"]?.members.count == 17)
            let other = #"{"headers": {"x-a": null}}"#
            let changed = try await service.call("PATCH", "/v1/origins/o", Self.json, body: other).json()
            #expect(changed["headers"]?["X-A"] == nil && changed["headers"]?.members.count == 16)

            let elsewhere = #"{"baseURL": "http://b.example"}"#
            #expect(try await service.call("PATCH", "/v1/origins/o", Self.json, body: elsewhere).status == 422)
            let old = Self.fields(["If-Match": "\"1\""])
            #expect(try await service.call("PATCH", "/v1/origins/o", old, body: "{}").status == 412)
        }
    }

    @Test("Scrubs are listed newest first")
    func scrubsAreListedTheNewestFirst() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a", LoopbackAsset(size: 300_000))
            let id = try #require(try await service.call("GET", "/o/media/a").headers["Larder-Asset-Id"])
            var ids: [JSON?] = []
            for body in ["{}", #"{"assetId": "\#(id)"}"#, "{}"] {
                let scrub = try await service.call("POST", "/v1/scrubs", Self.json, body: body).json()["scrubId"]
                ids.append(scrub)
                let path = "/v1/scrubs/\(scrub.map { $0.text.filter { $0 != "\"" } } ?? "")"
                let isOver = try await eventually { try await service.call("GET", path).json()["state"] == "succeeded" }
                #expect(isOver)
                #expect(try await service.call("GET", path).json()["bytesTotal"] == 300_000)
            }
            let first = try await service.call("GET", "/v1/scrubs?limit=2").json()
            #expect(first["items"]?.array.map { $0["scrubId"] } == [ids[2], ids[1]])
            let cursor = try #require(first["nextCursor"]?.plain)
            let second = try await service.call("GET", "/v1/scrubs?limit=2&cursor=\(cursor)").json()
            #expect(second["items"]?.array.map { $0["scrubId"] } == [ids[0]] && second["nextCursor"] == .null)
            #expect(try await service.call("GET", "/v1/scrubs?cursor=none").status == 422)
        }
    }
}
