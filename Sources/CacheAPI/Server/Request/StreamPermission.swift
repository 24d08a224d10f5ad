import CacheCore
import ReaderAccess

/// The permission of an event stream. It is checked while the stream is open, because its token can end before.
struct StreamPermission: Sendable {
    let gate: Authorizer
    var need: AccessRules.Need
    /// The credentials of the request, or of the request for its ticket.
    let credentials: RequestCredentials
    /// The `Host` field.
    let host: String?
    /// The reader at the start; nil if none was needed.
    let reader: Reader?

    /// Whether the credentials still permit the stream: the token or certificate is valid, and has the limits that it
    /// had at the start.
    var isValid: Bool {
        do throws(CacheError) {
            let current = try gate.access.admit(need, credentials, host: host, at: gate.wallClock.now())
            guard let current, let reader else { return true }
            return current.limits == reader.limits
        } catch {
            return false
        }
    }
}
