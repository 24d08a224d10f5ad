import Synchronization

/// Every fill under way in this process, under a number of its own: what administrators see and stop.
///
/// A fill is written in when it begins and struck out when it has ended; nothing is written in between.
final class FillBook: Sendable {
    private struct State {
        var last: UInt64 = 0
        var fills: [UInt64: FillTransfer] = [:]
        var numbers: [ObjectIdentifier: UInt64] = [:]
    }

    private let state = Mutex(State())

    /// Writes the fill in, under the next number.
    func enter(_ fill: FillTransfer) {
        state.withLock { state in
            state.last += 1
            state.fills[state.last] = fill
            state.numbers[ObjectIdentifier(fill)] = state.last
        }
    }

    /// Strikes the fill out; its number is never given again.
    func leave(_ fill: FillTransfer) {
        state.withLock { state in
            guard let number = state.numbers.removeValue(forKey: ObjectIdentifier(fill)) else { return }
            state.fills[number] = nil
        }
    }

    /// The fill of that number, while it is under way.
    subscript(number: UInt64) -> FillTransfer? { state.withLock { $0.fills[number] } }

    /// The fill's number, while it is under way.
    func number(of fill: FillTransfer) -> UInt64? { state.withLock { $0.numbers[ObjectIdentifier(fill)] } }

    /// Those with a number above `number`, in the order they began.
    func fills(after number: UInt64 = 0) -> [(number: UInt64, fill: FillTransfer)] {
        state.withLock { state in
            state.fills.filter { $0.key > number }.map { ($0.key, $0.value) }.sorted { $0.0 < $1.0 }
        }
    }
}
