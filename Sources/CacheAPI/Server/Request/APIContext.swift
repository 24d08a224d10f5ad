import CacheCore
import NIOCore
import ReaderAccess

/// The parts of a connection that routes use.
struct APIConnection: Sendable {
    let channel: any Channel
    /// Opens when the client has disconnected.
    let disconnection: AsyncEvent
    /// Nil without client authentication.
    let certificate: ClientCertificate?
    let client: ConnectionClient
}

/// The context of one request to a route.
struct APIContext: Sendable {
    let call: RequestCall
    let connection: APIConnection
    /// The values of the path's parameters, percent-encoded as received.
    let parameters: [String: Substring]
    /// Collects figures for the access log while the request is handled.
    let logContext: RequestLogContext
    /// The permission that the route has checked; nil for a route without one, and before the authorization.
    var permission: StreamPermission?
    /// The limited totals of all clients; nil before the authorization.
    var budgets: ClientBudgets?
    /// The memory that the body of the request holds; nil before the authorization.
    var bodyClaim: UsageBudget.Claim?

    var requestID: String { call.requestID }
    var client: RequestClient? { call.client }
    /// Opens when the client has disconnected.
    var disconnection: AsyncEvent { connection.disconnection }
    /// The reader of the request; nil before the authorization, and without a token.
    var reader: Reader? { logContext.content.reader }

    /// Returns a path parameter. Throws `.notFound` if the route has no such parameter, a programming error.
    func parameter(_ name: String) throws(CacheError) -> String {
        guard let value = parameters[name] else { throw CacheError(.notFound, "There is nothing at this path.") }
        return String(value)
    }

    /// Returns the path's `assetId`. Throws `.notFound` for a text that is not a valid identifier.
    func assetID() throws(CacheError) -> AssetID {
        guard let id = AssetID(try parameter("assetId")) else {
            throw CacheError(.notFound, "There is no such asset.")
        }
        return id
    }
}
