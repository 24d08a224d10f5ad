import CacheCore
import Hummingbird
import NIOCore

/// A request body whose bytes are charged to a claim as they arrive. It ends with ``RefusedBody`` at a limit.
struct ChargedBody: AsyncSequence, Sendable {
    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var base: RequestBody.AsyncIterator
        fileprivate let claim: UsageBudget.Claim

        mutating func next() async throws -> ByteBuffer? {
            guard let part = try await base.next() else { return nil }
            if let refusal = claim.grow(by: part.readableBytes) {
                claim.giveBack()
                throw RefusedBody(refusal)
            }
            return part
        }
    }

    let base: RequestBody
    let claim: UsageBudget.Claim

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base.makeAsyncIterator(), claim: claim) }
}

/// The failure of a body for which there is no memory. Its response ends the connection.
struct RefusedBody: Error {
    let error: CacheError

    init(_ limit: UsageLedger<String>.Refusal) {
        switch limit {
        case .share:
            error = CacheError(
                .overloaded, "The request bodies of this token hold a quarter of limits.requestBodies; repeat later.")
        case .total:
            error = CacheError(.overloaded, "The request bodies in memory reach limits.requestBodies; repeat later.")
        }
    }
}
