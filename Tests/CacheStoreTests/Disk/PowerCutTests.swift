import CacheTestKit
import Testing

/// Cuts the power after each operation on the disk of a store's life, SQLite's among them: what was not synced is there, or not,
/// or in parts. The store opens, every byte that is claimed is right, and nothing that was promised is lost.
///
/// A few of the operations are tried among the other tests, each one by `make faults ONLY=power`.
@Suite(.timeLimit(.minutes(60))) struct PowerCutTests {
    private let sweep = Sweep("power")

    @Test func whateverAPowerCutLeavesIsRight() async throws {
        let (cut, operations) = try await PowerCutScenario.recorded(seed: sweep.seed, starts: 4, steps: 80)
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
