import CacheCore
import Crypto
import Synchronization

/// Tickets for one request of the event stream each. A browser's EventSource cannot send `Authorization`.
final class EventTickets: Sendable {
    /// A ticket and the end of its validity.
    struct Ticket: Sendable {
        let text: String
        let expiresAt: Timestamp
    }

    private static let lifetime = Duration.seconds(30)
    /// The maximum number of unused tickets.
    private static let limit = 1000

    private let random: any RandomSource
    private let wallClock: any WallClock
    private let uptime: @Sendable () -> Duration
    /// Guards the end of each unused ticket, by the ticket's digest.
    private let ends = Mutex<[SHA256Digest: Duration]>([:])

    /// - Parameter uptime: The time since any start.
    init(random: any RandomSource, uptime: @escaping @Sendable () -> Duration, wallClock: any WallClock) {
        self.random = random
        self.wallClock = wallClock
        self.uptime = uptime
    }

    /// Issues a ticket. Throws `.overloaded` if too many are unused.
    func issue() throws(CacheError) -> Ticket {
        let (text, now) = (random.identifier() + random.identifier(), uptime())
        let isKept = ends.withLock { ends in
            ends = ends.filter { $0.value > now }
            guard ends.count < Self.limit else { return false }
            ends[Self.digest(text)] = now + Self.lifetime
            return true
        }
        guard isKept else { throw CacheError(.overloaded, "Too many tickets are unused; repeat in 30 seconds.") }
        return Ticket(text: text, expiresAt: wallClock.now() + Self.lifetime)
    }

    /// Consumes a ticket. Returns false if it is unknown, used or expired.
    func redeem(_ text: String) -> Bool {
        let now = uptime()
        return ends.withLock { $0.removeValue(forKey: Self.digest(text)) }.map { $0 > now } ?? false
    }

    private static func digest(_ text: String) -> SHA256Digest { SHA256.hash(data: Array(text.utf8)) }
}
