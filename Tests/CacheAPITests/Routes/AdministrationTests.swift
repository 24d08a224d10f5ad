import CacheAPI
import CacheCore
@testable import CacheEngine
import CacheTestKit
import Foundation
import Testing

@Suite(.timeLimit(.minutes(20))) struct AdministrationTests {
    private func document() throws -> SchemaDocument { try SchemaDocument.openAPI() }

    @Test("A job is submitted, followed and listed")
    func aJobIsSubmittedWatchedAndFoundAgain() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 300_000))
            let order: JSON = [
                "items": [["origin": "media", "path": "a.mp4", "ranges": ["bytes=0-99999"]]], "label": "t",
            ]
            let first = try await service.send(
                "POST", "/v1/jobs", ["Prefer": "wait=30", "Idempotency-Key": "k1"], order)
            #expect(first.status == 200, "\(first.text)")
            let job = try first.json()
            #expect(job["state"] == "succeeded" && job["bytesDone"] == 100_000)
            #expect(try document().faults(of: job, in: "Job") == [])
            guard case .string(let id)? = job["jobId"] else { throw CacheError(.internal, "The job has no jobId.") }
            #expect(first.headers["Location"] == "/v1/jobs/\(id)" && first.headers["Preference-Applied"] == "wait=30")

            let again = try await service.send("POST", "/v1/jobs", ["Idempotency-Key": "k1"], order)
            #expect(again.status == 202)
            #expect(try again.json()["jobId"] == .string(id))
            let other = try await service.send(
                "POST", "/v1/jobs", ["Idempotency-Key": "k1"], ["items": [["origin": "media", "path": "b"]]])
            #expect(other.status == 409)

            let items = try await service.call("GET", "/v1/jobs/\(id)/items").json()
            #expect(try document().faults(of: items["items"]?.array.first ?? .null, in: "JobItem") == [])
            #expect(try await service.call("GET", "/v1/jobs?state=succeeded&label=t").json()["items"]?.array.count == 1)
        }
    }

    @Test("A superseding job replaces the earlier job of its queue")
    func aJobTakesThePlaceOfTheOneBeforeInItsQueue() async throws {
        try await TestService.run { (service) async throws in
            let latch = LoopbackLatch()
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 300_000, faults: [.stall(after: 1000, until: latch)]))
            func order(_ members: JSON.Member...) -> JSON {
                .object([JSON.Member("items", [["origin": "media", "path": "a.mp4"]])] + members)
            }
            let queue = JSON.Member("queue", "player-1"), supersede = JSON.Member("supersede", .bool(true))
            let first = try await service.send("POST", "/v1/jobs", order(queue))
            let location = try #require(first.headers["Location"])
            let connection = try await RawConnection(port: service.port)
            try await connection.request("GET", location + "/events")
            _ = try #require(await connection.head())
            await latch.reached()

            let second = try await service.send("POST", "/v1/jobs", order(queue, supersede))

            #expect(second.status == 202, "\(second.text)")
            let job = try second.json()
            guard case .string(let id)? = job["jobId"] else { throw CacheError(.internal, "The job has no jobId.") }
            #expect(job["queue"] == "player-1")
            let last = try #require(await connection.text(through: "superseded by job \(id)."))
            #expect(last.contains("event: state") && last.contains("\"state\":\"cancelled\""))
            latch.release()
            let list = try await service.call("GET", "/v1/jobs?queue=player-1").json()
            #expect(list["items"]?.array.count == 2)
            #expect(try document().faults(of: list["items"]?.array.last ?? .null, in: "Job") == [])
            #expect(try await service.call("GET", "/v1/jobs?queue=other").json()["items"]?.array.count == 0)
            for (body, field): (JSON, JSON) in [
                (order(supersede), "supersede"), (order(JSON.Member("queue", "a b"), supersede), "queue"),
            ] {
                let refused = try await service.send("POST", "/v1/jobs", body)
                #expect(refused.status == 422)
                #expect(try refused.json()["field"] == field)
            }
        }
    }

    @Test("The event stream follows a job to its end")
    func eventsTellAJobToItsEnd() async throws {
        try await TestService.run { (service) async throws in
            let latch = LoopbackLatch()
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 300_000, faults: [.stall(after: 1000, until: latch)]))
            let job = try await service.send("POST", "/v1/jobs", ["items": [["origin": "media", "path": "a.mp4"]]])
            #expect(job.status == 202 && job.headers["Retry-After"] != nil)
            let location = try #require(job.headers["Location"])
            let connection = try await RawConnection(port: service.port)
            try await connection.request("GET", location + "/events")
            let head = try #require(await connection.head())
            #expect(head.headers["Content-Type"] == "text/event-stream")
            let first = try #require(await connection.text(through: "\n\n"))
            #expect(first.contains("event: state\n") && first.contains("id: "))
            latch.release()
            let last = try #require(await connection.text(through: "\"state\":\"succeeded\""))
            #expect(last.contains("event: state"))
            #expect(await connection.text(through: "0\r\n\r\n") != nil)

            let version = try #require(last.components(after: "id: ").last)
            let back = try await service.call("GET", location + "/events", ["Last-Event-ID": version])
            #expect(back.status == 204)
        }
    }

    @Test("Origins are created, changed and deleted")
    func originsAreMountedChangedAndUnmounted() async throws {
        try await TestService.run { (service) async throws in
            let body: JSON = ["baseURL": "http://127.0.0.1:1", "headers": ["Authorization": "Bearer s3cret"]]
            let new = try await service.send("PUT", "/v1/origins/other", body)
            #expect(new.status == 201 && new.headers["Location"] == "/v1/origins/other")
            let read = try await service.call("GET", "/v1/origins/other")
            #expect(!read.text.contains("s3cret") && read.headers["ETag"] == new.headers["ETag"])
            #expect(try document().faults(of: try read.json(), in: "Origin") == [])
            let same = try await service.send("PUT", "/v1/origins/other", try read.json())
            #expect(same.status == 200, "\(same.text)")
            #expect(
                try service.cache.configuration.origin("other").origin.settings.headers["Authorization"]
                    == "Bearer s3cret")
            try await secretStaysWithItsServer(service, try read.json())
            #expect(try await service.call("DELETE", "/v1/origins/other", ["If-Match": "\"0\""]).status == 412)
            #expect(try await service.call("DELETE", "/v1/origins/other").status == 204)
            #expect(try await service.call("GET", "/v1/origins/other").status == 404)
        }
    }

    @Test("Origins can name files only if the directory is configured")
    func filesAreNamedByOriginsOnlyWhereTheirDirectoryIsConfigured() async throws {
        let credentials: JSON = ["baseURL": "http://127.0.0.1:1", "credentialsFile": "media.txt"]
        let fallback: JSON = ["baseURL": "http://127.0.0.1:1", "fallback": ["file": "offline.mp4"]]
        try await TestService.run { (service) async throws in
            for (body, field) in [(credentials, "credentialsFile"), (fallback, "fallback.file")] {
                let refused = try await service.send("PUT", "/v1/origins/other", body)
                #expect(refused.status == 422)
                #expect(try refused.json()["field"] == .string(field))
            }
            #expect(try await service.call("GET", "/v1/origins/other").status == 404)
        }
        let directory = try TemporaryDirectory()
        try Data("X-Api-Key: s3cret\n".utf8).write(to: URL(filePath: directory.path("media.txt")))
        try await TestService.run(credentialsDirectory: directory.path, fallbackDirectory: "/srv") {
            (service) async throws in
            for body in [credentials, fallback] {
                let put = try await service.send("PUT", "/v1/origins/other", body)
                #expect([200, 201].contains(put.status), "\(put.text)")
                let read = try await service.call("GET", "/v1/origins/other").json()
                #expect(read["credentialsFile"] == body["credentialsFile"] ?? .null)
                #expect(read["fallback"] == body["fallback"] ?? .null)
                #expect(read["access"] == (body["fallback"] == nil ? "token" : "public"))
            }
        }
    }

    private func secretStaysWithItsServer(_ service: TestService, _ told: JSON) async throws {
        func put(_ baseURL: JSON) async throws -> RawResponse {
            guard case .object(let members) = told else { throw CacheError(.internal, "The origin is no object.") }
            let changed = members.map { $0.key == "baseURL" ? JSON.Member("baseURL", baseURL) : $0 }
            return try await service.send("PUT", "/v1/origins/other", .object(changed))
        }
        for server: JSON in ["https://127.0.0.1:1", "http://127.0.0.2:1", "http://127.0.0.1:2", "http://127.0.0.1"] {
            let moved = try await put(server)
            #expect(moved.status == 422 && moved.text.contains("headers.Authorization"), "\(server): \(moved.text)")
        }
        #expect(try service.cache.configuration.origin("other").origin.settings.baseURL == "http://127.0.0.1:1")
        #expect(try await put("HTTP://127.0.0.1:1/films").status == 200)
    }

    @Test("Assets are probed, listed, pinned, mapped and deleted")
    func assetsAreProbedListedPinnedMappedAndTakenOut() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 10_000, contentType: "video/mp4"))
            let probe = try await service.send("POST", "/v1/probe", ["origin": "media", "path": "a.mp4"])
            #expect(probe.status == 200, "\(probe.text)")
            #expect(try document().faults(of: try probe.json(), in: "ProbeReport") == [])
            let many = try await service.send(
                "POST", "/v1/probe",
                ["items": [["origin": "media", "path": "a.mp4"], ["origin": "media", "path": "no"]]])
            #expect(try many.json()["items"]?.array.map { $0["outcome"] } == ["succeeded", "failed"])
            #expect(try document().faults(of: try many.json()["items"]?.array.last ?? .null, in: "Problem") == [])

            let read = try await service.call("GET", "/o/media/a.mp4", ["Range": "bytes=0-999"])
            let id = try #require(read.headers["Larder-Asset-Id"])
            let list = try await service.call("GET", "/v1/assets?origin=media&state=partial").json()
            #expect(try document().faults(of: list["items"]?.array.first ?? .null, in: "Asset") == [])
            let patch = try await service.send("PATCH", "/v1/assets/\(id)", ["pinned": .bool(true), "tags": ["x"]])
            #expect(try patch.json()["pinned"] == .bool(true))
            let extents = try await service.call("GET", "/v1/assets/\(id)/extents").json()
            #expect(extents["items"]?.array.first?["offset"] == 0)
            let map = try await service.call("GET", "/v1/assets/\(id)/map?buckets=4").json()
            #expect(map["buckets"]?.array.count == 4)
            #expect(try await service.call("DELETE", "/v1/assets/\(id)/extents?length=100").status == 200)
            // The fill can end after the response.
            let isQuiet = try await eventually {
                try await service.call("POST", "/v1/assets/\(id)/cancel").json() == ["cancelled": 0]
            }
            #expect(isQuiet)
            #expect(try await service.call("DELETE", "/v1/assets/\(id)").status == 204)
            #expect(try await service.call("GET", "/v1/assets/\(id)").status == 404)
        }
    }

    @Test("Statistics are available as JSON, metrics, history and top list")
    func figuresAreToldInEveryForm() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 10_000))
            _ = try await service.call("GET", "/o/media/a.mp4")
            _ = try await service.call("GET", "/o/media/a.mp4")
            // A request counts after its response was sent.
            let isCounted = try await eventually {
                let stats = try await service.call("GET", "/v1/stats").json()
                #expect(try document().faults(of: stats, in: "Stats") == [])
                return stats["requests"]?["total"] == 2 && stats["bytes"]?["served"] == 20_000
            }
            #expect(isCounted)
            let metrics = try await service.call("GET", "/metrics")
            #expect(metrics.text.contains("larder_requests_total{origin=\"media\",result=\"hit\"} 1\n"))
            #expect(try await service.call("GET", "/v1/stats/history").status == 200)
            let top = try await service.call("GET", "/v1/stats/top?by=requests").json()
            #expect(top["items"]?.array.first?["requests"] == 2)
        }
    }

    @Test("Health, version and OpenAPI document are served")
    func theServiceTellsHowItIs() async throws {
        try await TestService.run { (service) async throws in
            #expect(try await service.call("GET", "/health/ready").json() == ["status": "ready"])
            #expect(try await service.call("GET", "/version").json()["version"] == "0.1.0-test")
            #expect(try await service.call("GET", "/openapi.yaml").text.hasPrefix("openapi: 3.1"))
            service.cache.drain()
            let draining = try await service.call("GET", "/health/ready")
            #expect(draining.status == 503 && draining.headers["Retry-After"] != nil)
            #expect(try await service.call("GET", "/health/live").status == 200)
        }
    }
}

extension String {
    /// The remainders of the lines that begin with `mark`.
    fileprivate func components(after mark: String) -> [String] {
        split(separator: "\n").filter { $0.hasPrefix(mark) }.map { String($0.dropFirst(mark.count)) }
    }
}
