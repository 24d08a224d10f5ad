import CacheCore
import CacheStore
import CacheTestKit
import Testing

@testable import CacheEngine

@Suite(.timeLimit(.minutes(5))) struct WebhookDeliveryTests {
    private let directory: TemporaryDirectory
    private let receiver: LoopbackUpstream

    init() throws {
        directory = try TemporaryDirectory()
        receiver = try LoopbackUpstream()
    }

    private func settings(isAllowed: Bool = true, kinds: Set<WebhookKind> = [.diskFull]) throws -> WebhookSettings {
        let key = try #require(WebhookKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
        return WebhookSettings(
            name: "ops", url: receiver.url("/hook?key=1"), kinds: kinds, keys: [key], allowsPrivateAddresses: isAllowed)
    }

    private static let full = CacheEvent.Content.diskFull(
        DiskEvent(freeBytes: 1, minFreeBytes: 2, usedBytes: 3, hasRefusedWrites: true))

    private static func report(_ cache: AssetCache) async throws -> WebhookReport {
        try #require(try await cache.webhooks.report().first)
    }

    @Test("An event is sent once to a webhook of its kind, with its document and a signature")
    func eventsAreDelivered() async throws {
        receiver.serve("/hook") { _ in .response(status: 204, headers: ["Connection": "close"]) }
        let settings = try settings()
        try await TestCache(directory: directory.path("data")).run { (cache) async throws in
            cache.webhooks.encode { _ in ["a": 1] }
            cache.webhooks.update([settings])
            cache.events.publish(.readiness(isReady: true, reasons: []))
            cache.events.publish(
                .circuitOpened(CircuitEvent(address: "http://a", failuresInARow: 1, pause: .zero, error: "")))
            cache.events.publish(Self.full)
            await receiver.waitForRequests(1)

            #expect(try await eventually { try await Self.report(cache).figures.delivered == 1 })
            #expect(try await eventually { try await Self.report(cache).queued == 0 })
            let request = try #require(receiver.requests.first)
            #expect(receiver.requests.count == 1 && request.method == "POST")
            #expect(request.headers["webhook-id"]?.hasPrefix("msg_") == true)
            #expect(request.headers["webhook-signature"]?.hasPrefix("v1,") == true)
        }
    }

    @Test("An event waits for a failing receiver, and survives a restart")
    func eventsSurvive() async throws {
        receiver.serve("/hook") { _ in .response(status: 503, headers: ["Connection": "close"]) }
        let settings = try settings()
        try await TestCache(directory: directory.path("data")).run(isOrderly: false) { (cache) async throws in
            cache.webhooks.encode { _ in [:] }
            cache.webhooks.update([settings])
            cache.events.publish(Self.full)
            #expect(try await eventually { try await Self.report(cache).figures.failures >= 1 })
            let report = try await Self.report(cache)
            #expect(report.state == .failing && report.queued == 1 && report.figures.lastStatus == 503)
        }
        receiver.serve("/hook") { _ in .response(status: 200, headers: ["Connection": "close"]) }
        // The webhook is known from the start: the events of others are deleted then.
        try await TestCache(directory: directory.path("data"), webhooks: [settings]).run { (cache) async throws in
            cache.webhooks.encode { _ in [:] }
            #expect(try await eventually { try await Self.report(cache).figures.delivered == 1 })
        }
        #expect(Set(receiver.requests.map { $0.headers["webhook-id"] }).count == 1)
    }

    @Test("An event without an encoder, at the end of the process, is queued by the next one with its receiver")
    func eventsOfTheEndAreQueued() async throws {
        let settings = try settings()
        try await TestCache(directory: directory.path("data")).run { (cache) async throws in
            cache.webhooks.encode { _ in [:] }
            cache.webhooks.update([settings])
            cache.events.publish(Self.full)
        }
        let store = try TestCache(directory: directory.path("data")).store
        #expect(try await store.catalog.backlogs()["ops"]?.count == 1)
        try store.close()
    }

    @Test("A redirect is not followed, and a private address is refused")
    func addressesAreGuarded() async throws {
        receiver.serve("/hook") { [receiver] _ in .redirect(to: receiver.url("/other")) }
        let (open, guarded) = (try settings(), try settings(isAllowed: false))
        try await TestCache(directory: directory.path("data")).run { (cache) async throws in
            cache.webhooks.encode { _ in [:] }
            cache.webhooks.update([open])
            cache.events.publish(Self.full)
            #expect(try await eventually { try await Self.report(cache).figures.lastStatus == 302 })
            #expect(receiver.requests(for: "/other").isEmpty)
            cache.webhooks.update([guarded])
            #expect(
                try await eventually {
                    try await Self.report(cache).figures.lastError?.contains("set webhooks.ops.allowPrivateAddresses")
                        ?? false
                })
        }
    }

    @Test("Events of a webhook that is removed are deleted")
    func removedWebhooksLoseTheirEvents() async throws {
        receiver.serve("/hook") { _ in .response(status: 500, headers: ["Connection": "close"]) }
        let settings = try settings()
        let cache = try TestCache(directory: directory.path("data"))
        try await cache.run { (cache) async throws in
            cache.webhooks.encode { _ in [:] }
            cache.webhooks.update([settings])
            cache.events.publish(Self.full)
            #expect(try await eventually { try await Self.report(cache).figures.failures >= 1 })
            cache.webhooks.update([])
            #expect(try await eventually { try await cache.context.store.catalog.backlogs().isEmpty })
        }
    }

    @Test("A job's end is one message, however often it is published, and those of other nodes are none")
    func jobsEndOnce() async throws {
        receiver.serve("/hook") { _ in .response(status: 200, headers: ["Connection": "close"]) }
        let settings = try settings(kinds: [.jobEnded, .jobAtRisk])
        var record = JobRecord(id: "j1", createdAt: Timestamp(seconds: 1))
        (record.state, record.finishedAt) = (.succeeded, Timestamp(seconds: 2))
        let job = JobSnapshot(record: record, tally: JobTally(), version: 1)
        var foreign = JobRecord(id: "j2", createdAt: Timestamp(seconds: 1))
        (foreign.state, foreign.finishedAt) = (.failed, Timestamp(seconds: 2))
        var other = JobSnapshot(record: foreign, tally: JobTally(), version: 1)
        other.isOfOtherNode = true
        try await TestCache(directory: directory.path("data")).run { [other] (cache) async throws in
            cache.webhooks.encode { _ in [:] }
            cache.webhooks.update([settings])
            cache.events.publish(.job(other, .state))
            cache.events.publish(.job(job, .progress))
            for _ in 0..<3 { cache.events.publish(.job(job, .state)) }
            cache.events.publish(.job(job, .atRisk))
            #expect(try await eventually { try await Self.report(cache).figures.delivered == 2 })
            #expect(receiver.requests.count == 2)
            #expect(receiver.requests.contains { $0.headers["webhook-id"] == "msg_j1_2000" })
        }
    }
}
