import CacheCore
import Testing

@Suite final class CircuitBreakerTests {
    private let settings = OriginSettings.CircuitBreaker(failures: 3, pause: .seconds(2))
    private var breaker = CircuitBreaker()

    @Test("Opens after the configured failures in a row")
    func opensAfterSoManyFailuresInARow() {
        fail(2)
        #expect(breaker.state == .closed && breaker.failuresInARow == 2 && breaker.failingSince == .zero)
        fail(1)

        #expect(breaker.state == .open(until: .seconds(2)))
        #expect(breaker.opensTotal == 1)
        #expect(breaker.admit(at: .milliseconds(1999)) == .refused(until: .seconds(2)))
    }

    @Test("A success between failures restarts the count")
    func anAnswerBetweenFailuresBeginsTheCountAnew() {
        fail(2)
        breaker.succeeded()
        #expect(breaker.failingSince == nil)
        fail(2)

        #expect(breaker.state == .closed)
        #expect(breaker.admit(at: .zero) == .admitted)
    }

    @Test("One probe is admitted, and other requests are refused meanwhile")
    func oneProbeFindsOutAndNobodyElseAsksMeanwhile() {
        fail(3)

        #expect(breaker.admit(at: .seconds(2)) == .probe)
        #expect(breaker.admit(at: .seconds(2)) == .refused(until: nil))
        breaker.succeeded()
        #expect(breaker.admit(at: .seconds(2)) == .admitted)
        #expect(breaker.failuresInARow == 0)
    }

    @Test("Each failed probe doubles the pause up to a minute")
    func eachFailedProbeDoublesThePauseUpToAMinute() {
        fail(3)
        var now = Duration.seconds(2)
        for pause in [4, 8, 16, 30, 30, 30] as [Int64] {
            #expect(breaker.admit(at: now) == .probe)
            breaker.failed(asProbe: true, settings: settings, at: now, random: 0.5)
            #expect(breaker.state == .open(until: now + .seconds(pause)))
            now += .seconds(pause)
        }
        #expect(breaker.opensTotal == 7)

        #expect(breaker.admit(at: now) == .probe)
        breaker.succeeded()
        fail(3, at: now)
        #expect(breaker.state == .open(until: now + .seconds(2)))
    }

    @Test("Pauses vary by a fifth", arguments: [(0.0, 1600), (0.25, 1800), (0.5, 2000), (1.0, 2400)])
    func pausesStrayByAFifth(_ random: Double, _ milliseconds: Int64) {
        for _ in 0..<3 { breaker.failed(asProbe: false, settings: settings, at: .zero, random: random) }
        guard case .open(let until) = breaker.state else {
            Issue.record("The circuit breaker is not open.")
            return
        }

        #expect(abs(until.wholeMilliseconds - milliseconds) <= 1)
    }

    @Test("After an abandoned probe the next request probes")
    func aProbeThatShowsNothingLeavesItToTheNext() {
        fail(3)
        #expect(breaker.admit(at: .seconds(2)) == .probe)
        breaker.abandoned(asProbe: true, at: .seconds(3))

        #expect(breaker.admit(at: .seconds(3)) == .probe)
    }

    @Test("Results of requests sent earlier neither end the probe nor extend the pause")
    func whatWasAskedBeforeNeitherEndsTheProbeNorLengthensThePause() {
        fail(3)
        fail(1, at: .seconds(1))
        #expect(breaker.state == .open(until: .seconds(2)))
        _ = breaker.admit(at: .seconds(2))
        fail(1, at: .seconds(2))
        breaker.abandoned(asProbe: false, at: .seconds(2))

        #expect(breaker.state == .halfOpen)
        #expect(breaker.opensTotal == 1)
    }

    private func fail(_ count: Int, at now: Duration = .zero) {
        for _ in 0..<count { breaker.failed(asProbe: false, settings: settings, at: now, random: 0.5) }
    }
}
