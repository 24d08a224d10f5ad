import CacheCore
import ReaderAccess

/// The permission of an event stream, or of a request whose body arrives. It is checked meanwhile, because its token can end
/// before.
struct StreamPermission: Sendable {
    let gate: Authorizer
    var need: AccessRules.Need
    /// The credentials of the request, or of the request for its ticket.
    let credentials: RequestCredentials
    /// The `Host` field.
    let host: String?
    /// The reader at the start; nil if none was needed.
    let reader: Reader?

    /// Throws the present refusal of the credentials, and `.unauthorized` if the reader has other rights than at the start.
    func confirm() throws(CacheError) {
        let current = try gate.access.admit(need, credentials, host: host, at: gate.wallClock.now())
        guard current == reader else {
            throw CacheError(
                .unauthorized, "The rights of the token have changed during the request: repeat it.",
                challenge: BearerChallenge.invalidToken)
        }
    }

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
