import CacheTestKit
import Testing

/// Simulates a power loss after each disk operation of a store, including those of SQLite. Unsynced changes survive
/// completely, partly or not at all. The store must open, claim no wrong byte and keep every promise.
///
/// A normal test run covers a sample of the operations; `make faults ONLY=power` covers all.
@Suite(.timeLimit(.minutes(60))) struct PowerCutTests {
    private let sweep = Sweep("power")

    @Test("Every state after a power cut opens without wrong bytes", arguments: [false, true])
    func whateverAPowerCutLeavesIsRight(isEncrypted: Bool) async throws {
        let (cut, operations) = try await PowerCutScenario.recorded(
            seed: sweep.seed, starts: 4, steps: 80, isEncrypted: isEncrypted)
        #expect(operations >= 2000)

        let outcome = try await cut.run(
            from: sweep.start, step: sweep.step(of: operations, brief: 40),
            seeds: sweep.isWhole ? [sweep.seed, sweep.seed &+ 1000, sweep.seed &+ 2000] : [sweep.seed],
            recoveries: sweep.isWhole ? 400 : 60,
            recoverySteps: sweep.isWhole ? 40 : 6, progress: sweep.reached(_:failures:))

        let what = "\(outcome.opened) of \(outcome.states) states opened after \(outcome.prefixes) cuts"
        sweep.ended(rounds: outcome.states, wrong: outcome.wrong, failures: outcome.failures, what)
        #expect(outcome.failures.isEmpty, "\(outcome.failures.prefix(10).joined(separator: "\n"))")
        #expect(outcome.opened == outcome.states)
        #expect(outcome.wrong == 0)
        #expect(outcome.claimedBytes > 0)
    }
}
