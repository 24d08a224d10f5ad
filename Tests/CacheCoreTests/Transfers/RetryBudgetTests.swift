import CacheCore
import Testing

@Suite struct RetryBudgetTests {
    @Test(
        "A fifth of the first requests can be retried, and never fewer than ten",
        arguments: [(0, 10), (1, 10), (50, 10), (55, 11), (200, 40), (1004, 200)])
    func aFifthOfTheFirstRequestsMayBeTriedAgainAndNeverLessThanTen(_ first: Int, _ allowed: Int) {
        var budget = RetryBudget()
        for _ in 0..<first { budget.asked(at: .seconds(3)) }
        let taken = (0..<500).map { _ in budget.take(at: .seconds(4)) }.count(where: \.self)

        #expect(taken == allowed)
        #expect(!budget.allows(at: .seconds(4)))
    }

    @Test("Requests and retries older than ten seconds do not count")
    func whatIsTenSecondsPastDoesNotCount() {
        var budget = RetryBudget()
        for _ in 0..<100 { budget.asked(at: .milliseconds(500)) }
        for _ in 0..<20 { _ = budget.take(at: .milliseconds(9900)) }

        #expect(!budget.allows(at: .milliseconds(9999)))
        #expect(!budget.allows(at: .seconds(10)), "The requests have expired, the retries still count.")
        #expect(!budget.allows(at: .milliseconds(18_999)))
        #expect(budget.allows(at: .seconds(19)))
    }

    @Test("After a long idle time only the minimum budget remains")
    func itIsAsGoodAsNewAfterALongQuiet() {
        var budget = RetryBudget()
        for second in 0..<40 {
            for _ in 0..<9 { budget.asked(at: .seconds(second)) }
            _ = budget.take(at: .seconds(second))
        }
        let taken = (0..<50).map { _ in budget.take(at: .seconds(7200)) }.count(where: \.self)

        #expect(taken == 10)
    }
}
