import Synchronization

/// Registry of all fills in progress, by number; the management API lists and cancels them.
///
/// A fill is added at its start and removed at its end. Its progress does not touch the registry.
final class FillRegistry: Sendable {
    /// Both directions of the mapping, and the last number that was assigned.
    private struct State {
        /// The last number that was assigned.
        var last: UInt64 = 0
        var fills: [UInt64: FillTransfer] = [:]
        var numbers: [ObjectIdentifier: UInt64] = [:]
    }

    /// Guards the mapping of numbers to fills.
    private let state = Mutex(State())

    /// Adds the fill under the next number.
    func enter(_ fill: FillTransfer) {
        state.withLock { state in
            state.last += 1
            state.fills[state.last] = fill
            state.numbers[ObjectIdentifier(fill)] = state.last
        }
    }

    /// Removes the fill; its number is not used again.
    func leave(_ fill: FillTransfer) {
        state.withLock { state in
            guard let number = state.numbers.removeValue(forKey: ObjectIdentifier(fill)) else { return }
            state.fills[number] = nil
        }
    }

    /// The fill of that number; nil if it has ended.
    subscript(number: UInt64) -> FillTransfer? { state.withLock { $0.fills[number] } }

    /// The fill's number; nil if it has ended.
    func number(of fill: FillTransfer) -> UInt64? { state.withLock { $0.numbers[ObjectIdentifier(fill)] } }

    /// The fills with a number above `number`, in the order of their start.
    func fills(after number: UInt64 = 0) -> [(number: UInt64, fill: FillTransfer)] {
        state.withLock { state in
            state.fills.filter { $0.key > number }.map { ($0.key, $0.value) }.sorted { $0.0 < $1.0 }
        }
    }
}
