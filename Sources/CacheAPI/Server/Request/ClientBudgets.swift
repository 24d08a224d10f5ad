import CacheCore

/// The totals of all clients that a client can make grow.
struct ClientBudgets: Sendable {
    /// The bytes of request bodies in memory.
    let bodies: UsageBudget

    init(_ live: LiveAPISettings) {
        bodies = UsageBudget {
            let total = live.values.limits.requestBodies
            return UsageBudget.Limits(total: total, share: total / 4, reserve: total / 4)
        }
    }
}
