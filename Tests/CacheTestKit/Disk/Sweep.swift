import Foundation

/// Parameters of a test with a large number of cases. A normal test run covers a sample; `FAULTS` with the name of the
/// sweep selects all cases.
///
/// The environment also sets the random seed (`SEED`), the first case (`START`) and the maximum number of cases
/// (`ROUNDS`).
package struct Sweep: Sendable {
    package let isWhole: Bool
    package let seed: UInt64
    package let start: Int
    private let rounds: Int?

    package init(_ name: String) {
        let environment = ProcessInfo.processInfo.environment
        isWhole = environment["FAULTS"] == name
        seed = environment["SEED"].flatMap { UInt64($0) } ?? 1
        start = isWhole ? environment["START"].flatMap { Int($0) } ?? 0 : 0
        rounds = environment["ROUNDS"].flatMap { Int($0) }
    }

    /// The distance between tested cases out of `count`. A normal test run covers about `brief` cases.
    package func step(of count: Int, brief: Int) -> Int {
        max(1, count / max(1, isWhole ? rounds ?? count : brief))
    }

    /// Reports to `scripts/faults.py` that all cases before `number` are done, and their failures.
    package func reached(_ number: Int, failures: [String]) {
        guard isWhole, number.isMultiple(of: 10) else { return }
        say(failures)
        say("START=\(number)")
    }

    /// Reports the result of the sweep to `scripts/faults.py`.
    package func ended(rounds: Int, wrong: Int, failures: [String], _ what: String) {
        guard isWhole else { return }
        say(failures)
        say("\(rounds) \(wrong) \(what)")
    }

    private func say(_ failures: [String]) {
        for failure in failures { say("FAILED \(failure.replacing("\n", with: " "))") }
    }

    private func say(_ line: String) {
        FileHandle.standardOutput.write(Data("SWEEP \(line)\n".utf8))
    }
}
