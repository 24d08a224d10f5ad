import CacheCore

/// The totals that clients can make grow, and the feed of their event streams.
struct ClientBudgets: Sendable {
    /// The bytes of request bodies in memory.
    let bodies: UsageBudget
    /// The open event streams.
    let followers: UsageBudget
    /// The jobs in lines that are being received: each holds its items in memory.
    let uploads: UsageBudget
    /// The event streams of each address.
    let addresses: AddressLimiter
    let feed: EventFeed

    init(_ live: LiveAPISettings, addresses: AddressLimiter, feed: EventFeed) {
        bodies = UsageBudget {
            let total = live.values.limits.requestBodies
            return UsageBudget.Limits(total: total, share: total / 4, reserve: total / 4)
        }
        followers = UsageBudget {
            let total = live.values.limits.followers
            return UsageBudget.Limits(total: total, share: max(1, total / 10))
        }
        uploads = UsageBudget { UsageBudget.Limits(total: 4, share: 1, reserve: 1) }
        self.addresses = addresses
        self.feed = feed
    }
}
