import CacheCore
import CacheStore
import Testing

@testable import CacheEngine

@Suite struct WebhookEndpointTests {
    private static let start = Timestamp(seconds: 1_780_000_000)
    private var endpoint: WebhookEndpoint

    init() throws {
        let key = try #require(WebhookKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
        endpoint = WebhookEndpoint(WebhookSettings(name: "ops", url: "https://ops.example/", keys: [key]))
        endpoint.dueAt = Self.start
    }

    private static func delivery(attempts: Int = 0) -> WebhookDelivery {
        var delivery = WebhookDelivery(
            webhook: "ops", message: "m", kind: "job.ended", payload: "{}", createdAt: start)
        delivery.attempts = attempts
        return delivery
    }

    @Test("Delays double from a second to an hour, with jitter, and the last attempt is after 24 hours")
    func delaysGrow() {
        let delays = (1...14).map { WebhookRetry.delay(after: $0, random: 1) }
        #expect(delays.prefix(4) == [.seconds(1), .seconds(2), .seconds(4), .seconds(8)])
        #expect(delays.suffix(2) == [.seconds(3600), .seconds(3600)])
        #expect(WebhookRetry.delay(after: 3, random: 0) == .seconds(2))

        var (now, attempts) = (Self.start, 0)
        let random = SeededChanceForRetries()
        while let next = WebhookRetry.next(
            after: attempts + 1, of: Self.start, wish: nil, at: now, random: random.uniform())
        {
            #expect(next > now)
            (now, attempts) = (next, attempts + 1)
        }
        #expect(now == Self.start + .seconds(86_400))
        #expect((30...60).contains(attempts))
    }

    @Test("Retry-After postpones the next attempt, up to an hour")
    func wishesAreHonoured() {
        let next = { (wish: Duration) in
            WebhookRetry.next(after: 1, of: Self.start, wish: wish, at: Self.start, random: 0)
        }
        #expect(next(.seconds(120)) == Self.start + .seconds(120))
        #expect(next(.seconds(1_000_000)) == Self.start + .seconds(3600))
        #expect(next(.zero) == Self.start + .milliseconds(500))
    }

    @Test("A failing receiver gets one request at a time, after pauses of up to a minute")
    mutating func failuresPause() {
        #expect(endpoint.slots(at: .zero, Self.start) == WebhookEndpoint.concurrency)
        for _ in 0..<10 {
            let (step, isBack) = endpoint.end(
                Self.delivery(), .refused(status: 503, wish: nil), at: .zero, Self.start, random: 1)
            #expect(step == .postpone(attempts: 1, until: Self.start + .seconds(1)) && !isBack)
        }
        #expect(endpoint.slots(at: .seconds(59), Self.start) == 0)
        #expect(endpoint.slots(at: .seconds(60), Self.start) == 1)
        let (step, isBack) = endpoint.end(
            Self.delivery(), .delivered(status: 204), at: .seconds(60), Self.start, random: 1)
        #expect(step == .remove && isBack)
        #expect(endpoint.slots(at: .seconds(60), Self.start) == WebhookEndpoint.concurrency)
        #expect(endpoint.figures.failures == 10 && endpoint.figures.delivered == 1 && endpoint.figures.lastError == nil)
    }

    @Test("A refused message does not pause the others")
    mutating func oneMessagePausesNothing() {
        let (step, _) = endpoint.end(
            Self.delivery(attempts: 4), .refused(status: 422, wish: nil), at: .zero, Self.start, random: 1)
        #expect(step == .postpone(attempts: 5, until: Self.start + .seconds(16)))
        #expect(endpoint.slots(at: .zero, Self.start) == WebhookEndpoint.concurrency)
    }

    @Test("An event expires after 24 hours")
    mutating func eventsExpire() {
        let (step, _) = endpoint.end(
            Self.delivery(attempts: 40), .refused(status: 500, wish: nil), at: .zero, Self.start + .seconds(86_400),
            random: 1)
        #expect(step == .remove && endpoint.figures.expired == 1)
    }

    @Test("After status 410 there are no requests until the settings are loaded again")
    mutating func goneReceiversRest() {
        _ = endpoint.end(Self.delivery(), .refused(status: 410, wish: nil), at: .zero, Self.start, random: 1)
        #expect(endpoint.isGone && endpoint.slots(at: .seconds(100_000), Self.start) == 0)
        endpoint.apply(endpoint.settings)
        #expect(!endpoint.isGone && endpoint.slots(at: .zero, Self.start) == WebhookEndpoint.concurrency)
    }

    @Test(
        "The last error names the remedy",
        arguments: [
            (WebhookOutcome.refused(status: 302, wish: nil), "redirects are not followed: set webhooks.ops.url"),
            (.refused(status: 500, wish: nil), "The receiver answered with status 500."),
            (
                .failed(CacheError(.upstreamForbidden, "a is at a private address.")),
                "set webhooks.ops.allowPrivateAddresses"
            ),
            (.failed(CacheError(.upstreamUnreachable(), "a refused the connection.")), "a refused the connection."),
        ])
    mutating func errorsNameTheRemedy(outcome: WebhookOutcome, text: String) {
        _ = endpoint.end(Self.delivery(), outcome, at: .zero, Self.start, random: 1)
        #expect(endpoint.figures.lastError?.contains(text) == true, "\(endpoint.figures.lastError ?? "none")")
    }
}

/// A few numbers in 0..<1.
private final class SeededChanceForRetries {
    private var count = 0

    func uniform() -> Double {
        count += 1
        return Double(count * 37 % 100) / 100
    }
}
