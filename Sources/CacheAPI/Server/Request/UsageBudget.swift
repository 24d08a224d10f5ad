import CacheCore
import ReaderAccess

/// A limited total that all clients share, with a share for each token: bodies of requests, followers, tickets.
final class UsageBudget: Sendable {
    typealias Limits = UsageLedger<String>.Limits

    /// The amount that one request or stream holds. It is returned with the last reference at the latest.
    final class Claim: Sendable {
        private let budget: UsageBudget
        private let holder: String?
        private let isPrivileged: Bool
        private let amount = OrderedMutex(.usageClaim, 0)

        fileprivate init(_ budget: UsageBudget, _ reader: Reader?) {
            self.budget = budget
            holder = reader?.id
            // Without a reader no token is configured, and each client may do everything.
            isPrivileged = reader?.permits(.admin) ?? true
        }

        /// Adds to the amount. Returns the limit that prevents it.
        func grow(by more: Int) -> UsageLedger<String>.Refusal? {
            let limits = budget.limits()
            return amount.withLock { amount in
                let refusal = budget.ledger.withLock {
                    $0.claim(more, by: holder, isPrivileged: isPrivileged, of: limits)
                }
                if refusal == nil { amount += more }
                return refusal
            }
        }

        /// Returns the whole amount. Further calls have no effect.
        func giveBack() {
            amount.withLock { amount in
                guard amount > 0 else { return }
                budget.ledger.withLock { $0.giveBack(amount, by: holder, isPrivileged: isPrivileged) }
                amount = 0
            }
        }

        deinit { giveBack() }
    }

    /// The limits, evaluated for each claim.
    private let limits: @Sendable () -> Limits
    private let ledger = OrderedMutex(.leaf, UsageLedger<String>())

    init(limits: @escaping @Sendable () -> Limits) { self.limits = limits }

    /// An empty claim of the reader; nil: a client of a service without tokens.
    func claim(for reader: Reader?) -> Claim { Claim(self, reader) }
}
