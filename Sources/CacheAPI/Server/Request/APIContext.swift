package import CacheCore
package import Hummingbird
import Logging
import NIOCore
import ReaderAccess

/// The context of one request to the router.
package struct APIContext: RequestContext {
    package var coreContext: CoreRequestContextStorage
    /// Collects figures for the access log while the request is handled.
    package let note: RequestLogContext
    /// The request identifier. ``RequestMiddleware`` sets it before any route sees the request.
    package var requestID = ""
    /// The time since the start of the request; set together with `requestID`.
    package var stopwatch: @Sendable () -> Duration = { .zero }
    /// The proofs of identity of the client. ``SignedTargetResponder`` sets them before the router sees the request.
    var credentials: RequestCredentials
    /// The permission that the route has checked; nil for a route without one, and before the authorization.
    var permission: StreamPermission?
    /// The limited totals of all clients; nil before the authorization.
    var budgets: ClientBudgets?
    /// The memory that the body of the request holds; nil before the authorization.
    var bodyClaim: UsageBudget.Claim?
    /// The length of the request target with its signature.
    var targetBytes = 0
    /// Reports that the client has disconnected; nil without a connection (tests).
    let presence: DisconnectSignal?
    /// Closes the connection.
    let disconnect: @Sendable () -> Void
    /// The addresses of the connection; nil without one (tests).
    let connection: ConnectionClient?
    /// The client; nil without a connection (tests). ``SignedTargetResponder`` sets that of the request.
    var client: RequestClient?

    package init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
        note = RequestLogContext()
        disconnect = { [channel = source.channel] in channel.close(promise: nil) }
        connection = ConnectionClient.current
        client = connection?.client
        credentials = RequestCredentials(subjects: ClientCertificate.current?.subjects ?? [])
        presence = DisconnectSignal.current
    }

    /// The reader of the request; nil before the authorization, and without a token.
    var reader: Reader? { note.content.reader }

    /// Returns a path parameter. Throws `.notFound` if the route has no such parameter, a programming error.
    package func parameter(_ name: String) throws(CacheError) -> String {
        guard let value = parameters.get(name) else { throw CacheError(.notFound, "There is nothing at this path.") }
        return value
    }

    /// Returns the path's `assetId`. Throws `.notFound` for a text that is not a valid identifier.
    package func assetID() throws(CacheError) -> AssetID {
        guard let id = AssetID(try parameter("assetId")) else {
            throw CacheError(.notFound, "There is no such asset.")
        }
        return id
    }
}
