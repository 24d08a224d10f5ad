import CacheCore
import CacheTestKit
import Synchronization
import ReaderAccess
import Testing

@testable import CacheAPI
@testable import CacheEngine

/// The event stream, its tickets, the live statistics and the totals of lists.
@Suite(.timeLimit(.minutes(5))) struct EventRouteTests {
    private let token = AccessRules(tokens: [("secret", .read)])

    @Test("Events of a read are listed and resumed")
    func eventsAreListed() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 1000))
            _ = try await service.call("GET", "/o/media/a.mp4")
            // The fill can end after the response.
            let hasEnded = try await eventually {
                let list = try await service.call("GET", "/v1/events?topics=fills").json()
                return list["items"]?.array.count == 2
            }
            #expect(hasEnded)
            let list = try await service.call("GET", "/v1/events?topics=fills").json()
            guard case .array(let events)? = list["items"] else { throw CacheError(.internal, "no list") }
            #expect(events.compactMap { $0["type"] } == ["started", "ended"])
            #expect(events[1]["fill"]?["outcome"] == "succeeded" && events[1]["fill"]?["bytes"] == 1000)
            guard case .integer(let last)? = list["lastId"] else { throw CacheError(.internal, "no id") }
            let rest = try await service.call("GET", "/v1/events?topics=fills&after=\(last)").json()
            #expect(rest["items"] == [] && rest["isComplete"] == .bool(true))
            #expect(try await service.call("GET", "/v1/events?after=1").json()["isComplete"] == .bool(false))
            #expect(try await service.call("GET", "/v1/events?topics=fills,rain").status == 422)
        }
    }

    @Test("A stream sends the events after the last one that its client has seen")
    func aStreamResumes() async throws {
        try await TestService.run { (service) async throws in
            let log = service.cache.events
            log.publish(.log(isError: false, message: "first", metadata: ["origin": "media"]))
            let seen = log.lastID
            log.publish(.log(isError: true, message: "second", metadata: [:]))
            let connection = try await RawConnection(port: service.port)
            try await connection.send(
                "GET /v1/events?topics=health&after=0 HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
                    + "Last-Event-ID: \(seen)\r\n\r\n")
            let start = try #require(await connection.text(through: "second"))
            log.publish(.log(isError: false, message: "third", metadata: [:]))
            let text = start + (try #require(await connection.text(through: "third")))
            #expect(text.contains("X-Accel-Buffering: no\r\n"))
            #expect(text.contains("event: health\ndata: {\"id\":\(seen + 1)") && !text.contains("first"))
            #expect(text.contains("\"type\":\"error\",\"message\":\"second\""))
            try await connection.hangUp()
        }
    }

    @Test("The events of a job end with its last state")
    func aJobHasEvents() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 1000))
            let job = try await service.send(
                "POST", "/v1/jobs", ["items": [["origin": "media", "path": "a.mp4"]]]
            ).json()
            let path = "/v1/jobs/\(try #require(job["jobId"]?.plain))/events"
            let stream = try await service.call("GET", path, ["Accept": "text/event-stream"])
            #expect(stream.status == 200 && stream.text.hasPrefix("event: state\nid: "))
            let last = try #require(stream.text.split(separator: "event: state\nid: ").last)
            #expect(last.contains("\"state\":\"succeeded\""))
            let seen = String(last.prefix { $0 != "\n" })
            let again = try await service.call("GET", path, ["Last-Event-ID": seen])
            #expect(again.status == 204)
        }
    }

    @Test("A token has a tenth of the followers")
    func followersAreLimitedByToken() async throws {
        let access = try TestAccess.rules([("one", #""scope":"read""#), ("two", #""scope":"read""#)])
        try await TestService.run(access: access, limits: .init(followers: 10)) { (service) async throws in
            func follow(_ token: String) async throws -> RawConnection {
                let connection = try await RawConnection(port: service.port)
                try await connection.send(
                    "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
                        + "Authorization: Bearer \(token)\r\n\r\n")
                return connection
            }
            let first = try await follow("one")
            #expect(await first.text(through: ":\n\n") != nil)
            #expect(try await follow("one").response()?.status == 503)
            let other = try await follow("two")
            #expect(await other.text(through: ":\n\n")?.hasPrefix("HTTP/1.1 200") ?? false)
            try await first.hangUp()
            let isFree = try await eventually {
                let next = try await follow("one")
                return await next.text(through: "\r\n")?.hasPrefix("HTTP/1.1 200") ?? false
            }
            #expect(isFree)
        }
    }

    @Test("Unused tickets are limited")
    func unusedTicketsAreLimited() throws {
        let tickets = EventTickets(random: SeededChance(), uptime: { .zero }, wallClock: ManualWallClock())
        for _ in 0..<1000 { _ = try tickets.issue(for: nil) }
        #expect(throws: CacheError.self) { try tickets.issue(for: nil) }
    }

    @Test("A ticket replaces the token of one request")
    func ticketsAreUsedOnce() async throws {
        try await TestService.run(access: token) { (service) async throws in
            #expect(try await service.call("GET", "/v1/events").status == 401)
            #expect(try await service.call("POST", "/v1/events/tickets").status == 401)
            let response = try await service.call("POST", "/v1/events/tickets", ["Authorization": "Bearer secret"])
            #expect(response.status == 201)
            guard case .string(let ticket)? = try response.json()["ticket"] else { throw CacheError(.internal, "none") }
            #expect(try await service.call("GET", "/v1/events?ticket=\(ticket)").status == 200)
            #expect(try await service.call("GET", "/v1/events?ticket=\(ticket)").status == 401)
            #expect(try await service.call("GET", "/v1/events?ticket=").status == 401)
            #expect(try await service.call("GET", "/v1/stats?ticket=\(ticket)").status == 401)
        }
    }

    /// The ends of a token.
    private enum TokenEnd: CaseIterable { case expiry, removal, otherLimits, ticketExpiry, ticketRemoval }

    @Test("A stream ends when its token ends, also with a ticket", arguments: TokenEnd.allCases)
    private func streamsEndWithTheirToken(end: TokenEnd) async throws {
        let expiry = RFC3339.format(Timestamp(seconds: 1_780_000_000) + .seconds(60))
        let access = try TestAccess.rules([("short", #""scope":"read","expiresAt":"\#(expiry)""#)])
        try await TestService.run(access: access) { (service) async throws in
            let paths = ["/v1/events", "/v1/stats/live"]
            for path in paths {
                var (target, fields) = (path, "Authorization: Bearer short\r\n")
                if end == .ticketExpiry || end == .ticketRemoval {
                    let ticket = try await service.call("POST", "/v1/events/tickets", ["Authorization": "Bearer short"])
                    (target, fields) = ("/v1/events?ticket=\(try #require(ticket.json()["ticket"]?.plain))", "")
                }
                let connection = try await RawConnection(port: service.port)
                try await connection.send(
                    "GET \(target) HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\(fields)\r\n")
                // The first event or comment.
                _ = try #require(await connection.text(through: "\n\n"))
                switch end {
                case .expiry, .ticketExpiry: service.wallClock.advance(by: .seconds(60))
                case .removal, .ticketRemoval: access.directory.update(file: nil)
                case .otherLimits:
                    access.directory.update(file: try TestAccess.file([("short", #""scope":"read","origins":[]"#)]))
                }
                // The last chunk.
                #expect(await connection.text(through: "\r\n0\r\n\r\n") != nil)
                service.wallClock.advance(by: .seconds(-60))
                access.directory.update(
                    file: try TestAccess.file([("short", #""scope":"read","expiresAt":"\#(expiry)""#)]))
            }
        }
    }

    @Test("A ticket ends with the token that it was requested with")
    func ticketsEndWithTheirToken() async throws {
        let access = AccessRules(tokens: [("secret", .read)])
        try await TestService.run(access: access) { (service) async throws in
            let response = try await service.call("POST", "/v1/events/tickets", ["Authorization": "Bearer secret"])
            let ticket = try #require(try response.json()["ticket"]?.plain)
            access.directory.update(file: nil)
            #expect(try await service.call("GET", "/v1/events?ticket=\(ticket)").status == 401)
        }
    }

    @Test("A ticket expires")
    func ticketsExpire() throws {
        let uptime = Mutex(Duration.zero)
        let tickets = EventTickets(
            random: SeededChance(), uptime: { uptime.withLock { $0 } }, wallClock: ManualWallClock())
        let (early, late) = (try tickets.issue(for: nil), try tickets.issue(for: nil))
        uptime.withLock { $0 = .seconds(29) }
        #expect(throws: Never.self) { try tickets.redeem(early.text) }
        uptime.withLock { $0 = .seconds(31) }
        #expect(throws: CacheError.self) { try tickets.redeem(late.text) }
    }

    @Test("The live statistics count bytes while they move")
    func liveStatistics() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 100_000))
            _ = service.cache.statistics.live.sample(at: Timestamp(seconds: 1))
            _ = try await service.call("GET", "/o/media/a.mp4")
            _ = try await service.call("GET", "/o/media/a.mp4")
            // The response of the second call is recorded after its last byte was received.
            let isRecorded = try await eventually {
                service.cache.statistics.requestLatencies.snapshot.durations.reduce(0) { $0 + $1.count } == 2
            }
            #expect(isRecorded)
            _ = service.cache.statistics.live.sample(at: Timestamp(seconds: 4_000_000_000))
            let live = try await service.call("GET", "/v1/stats/live?windowSeconds=1").json()
            guard case .array(let seconds)? = live["seconds"] else { throw CacheError(.internal, "no seconds") }
            let second = try #require(seconds.first)
            #expect(seconds.count == 1)
            #expect(second["clientBytesFromCache"] == 100_000 && second["clientBytesFromUpstream"] == 100_000)
            #expect(second["upstreamBytes"] == 100_000)
            #expect(second["requests"]?["hit"] == 1 && second["requests"]?["miss"] == 1)
            #expect(second["activeReaders"] == 0)
            #expect(try await service.call("GET", "/v1/stats/live?windowSeconds=0").status == 422)
        }
    }

    @Test("A list states its total, and sorts by key and length in pages")
    func totals() async throws {
        try await TestService.run { (service) async throws in
            for (path, size) in [("/b", 300), ("/a%20b", 200), ("/%C3%A4", 100)] {
                service.upstream.serve(path, LoopbackAsset(size: Int64(size)))
                _ = try await service.call("GET", "/o/media\(path)")
            }
            for sort in ["key", "contentLength", "hits"] {
                var (cursor, keys): (String?, [JSON]) = ("", [])
                while let next = cursor {
                    let query = "total=true&limit=1&order=asc&sort=\(sort)" + (next.isEmpty ? "" : "&cursor=\(next)")
                    let page = try await service.call("GET", "/v1/assets?\(query)").json()
                    #expect(page["total"] == 3)
                    guard case .array(let items)? = page["items"] else { break }
                    keys += items.compactMap { $0["key"] }
                    cursor = if case .string(let text)? = page["nextCursor"] { text } else { nil }
                }
                #expect(keys.count == 3 && Set(keys).count == 3, "\(sort)")
            }
            let long = "/" + String(repeating: "x", count: 3000)
            for path in [long, long + "y"] {
                service.upstream.serve(path, LoopbackAsset(size: 10))
                _ = try await service.call("GET", "/o/media\(path)")
            }
            let first = try await service.call("GET", "/v1/assets?sort=key&limit=1&prefix=/o/media/xxx").json()
            guard case .string(let next)? = first["nextCursor"] else { throw CacheError(.internal, "no cursor") }
            #expect(next.utf8.count < 200)
            let second = try await service.call(
                "GET", "/v1/assets?sort=key&limit=1&prefix=/o/media/xxx&cursor=\(next)"
            ).json()
            #expect(second["items"] != first["items"] && second["nextCursor"] == .null)
            for list in ["jobs", "evictions", "scrubs"] {
                #expect(try await service.call("GET", "/v1/\(list)?total=true").json()["total"] == 0, "\(list)")
                #expect(try await service.call("GET", "/v1/\(list)").json()["total"] == nil, "\(list)")
            }
        }
    }
}
