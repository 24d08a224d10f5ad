import CacheCore
import Cryptography

/// Tickets for one request of the event stream each. A browser's EventSource cannot send `Authorization`. A ticket has
/// the permission of the reader that requested it.
final class EventTickets: Sendable {
    /// A ticket and the end of its validity.
    struct Ticket: Sendable {
        let text: String
        let expiresAt: Timestamp
    }

    private static let lifetime = Duration.seconds(30)
    /// The limits of unused tickets.
    private static let limits = UsageBudget.Limits(total: 1000, share: 100, reserve: 100)

    private let random: any RandomSource
    private let wallClock: any WallClock
    private let uptime: @Sendable () -> Duration
    /// An unused ticket.
    private struct Issued {
        let end: Duration
        let permission: StreamPermission?
        let claim: UsageBudget.Claim
    }

    private let budget = UsageBudget { EventTickets.limits }
    /// Guards the unused tickets, by the digests of their texts.
    private let issued = OrderedMutex<[[UInt8]: Issued]>(.leaf, [:])

    /// - Parameter uptime: The time since any start.
    init(random: any RandomSource, uptime: @escaping @Sendable () -> Duration, wallClock: any WallClock) {
        self.random = random
        self.wallClock = wallClock
        self.uptime = uptime
    }

    /// Issues a ticket for the reader with `permission`. Throws `.overloaded` if too many are unused, of this reader or
    /// in total.
    func issue(for permission: StreamPermission?) throws(CacheError) -> Ticket {
        let (text, now) = (random.identifier() + random.identifier(), uptime())
        issued.withLock { issued in issued = issued.filter { $0.value.end > now } }
        let claim = budget.claim(for: permission?.reader)
        guard claim.grow(by: 1) == nil else {
            throw CacheError(.overloaded, "Too many tickets are unused; repeat in 30 seconds.")
        }
        issued.withLock { issued in
            issued[Self.digest(text)] = Issued(end: now + Self.lifetime, permission: permission, claim: claim)
        }
        return Ticket(text: text, expiresAt: wallClock.now() + Self.lifetime)
    }

    /// Consumes a ticket and returns the permission of the reader that requested it. Throws `.unauthorized` if the
    /// ticket is unknown, used or expired, and if the reader's token has ended.
    func redeem(_ text: String) throws(CacheError) -> StreamPermission? {
        let now = uptime()
        guard let ticket = issued.withLock({ $0.removeValue(forKey: Self.digest(text)) }), ticket.end > now else {
            throw CacheError(
                .unauthorized, "The ticket is unknown, used or expired; request one with POST /v1/events/tickets.")
        }
        guard ticket.permission?.isValid ?? true else {
            throw CacheError(.unauthorized, "The token that the ticket was requested with has ended.")
        }
        return ticket.permission
    }

    private static func digest(_ text: String) -> [UInt8] { HashFunction.sha256.digest(of: text.utf8) }
}
