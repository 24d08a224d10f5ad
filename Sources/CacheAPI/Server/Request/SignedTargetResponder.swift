import CacheCore
import HTTPTypes
package import Hummingbird

/// Responder before the router: takes the signature out of a content URL, so that routes, logs, traces and problem
/// documents see the target without it. It also finds the client of the request.
package struct SignedTargetResponder<Base: HTTPResponder>: HTTPResponder where Base.Context == APIContext {
    package typealias Context = APIContext

    private let base: Base
    private let live: LiveAPISettings

    init(_ base: Base, _ live: LiveAPISettings) {
        self.base = base
        self.live = live
    }

    package func respond(to request: Request, context: APIContext) async throws -> Response {
        var context = context
        let given = request.head.path ?? ""
        context.targetBytes = given.utf8.count
        context.client = context.connection?.client(request.headers)
        let (target, signature) = live.values.access.strip(RequestTarget.originForm(given))
        context.credentials = RequestCredentials(
            request.headers, subjects: context.credentials.subjects, signature: signature)
        guard target.utf8.count != given.utf8.count else {
            return try await base.respond(to: request, context: context)
        }
        var head = request.head
        head.path = target
        return try await base.respond(to: Request(head: head, body: request.body), context: context)
    }
}
