import CacheCore
import CacheEngine
import HTTPTypes

/// Responses to other nodes of the fleet.
extension ContentResponder {
    /// Returns cached bytes, or those that are being received, to another node. Nothing is requested from an upstream.
    ///
    /// The response is 206 with the stored fields and `Age`; its range begins at the first requested byte and can be
    /// shorter than requested. Without the first byte it is 504 with `Larder-Next-Byte` or `Larder-Coming`.
    func answerPeer(_ call: ContentCall, _ logContext: RequestLogContext) async -> ServerResponse {
        // Purges that are applied while the answer is made count for the next one.
        let state = gate.live.values.peers.admit(call.credentials) ? reader.peerState : nil
        let response = await answer(toPeer: call, logContext)
        return state.map { response.adding(.larderFleet, $0) } ?? response
    }

    private func answer(toPeer call: ContentCall, _ logContext: RequestLogContext) async -> ServerResponse {
        do throws(CacheError) {
            let peers = gate.live.values.peers
            guard peers.admit(call.credentials) else {
                throw CacheError(.unauthorized, "The request proves no node of the fleet; check fleet.keyFile.")
            }
            guard !call.isLoop(to: reader.loopName) else {
                throw CacheError(.loop, "CDN-Loop names this service: the node has asked itself.")
            }
            guard case .known(let id) = try call.content.reference() else {
                throw CacheError(.notFound, "There is no such asset.")
            }
            logContext.hold(try takePermit())
            let request = ContentReader.PeerRequest(
                content: ContentRequest(isHead: call.isHead, fields: call.fields), name: call.fields[.larderPeer] ?? "",
                isConfidential: peers.admit(certificate: call.credentials))
            switch try await reader.readForPeer(id, request) {
            case .coming: return missing(call, nil, isComing: true, logContext)
            case .missing(let next): return missing(call, next, isComing: false, logContext)
            case .read(let read): return try await content(of: read, call, logContext)
            }
        } catch {
            return refusal(call, ReadFailure(error), .asStated, logContext)
        }
    }

    private func missing(
        _ call: ContentCall, _ next: Int64?, isComing: Bool, _ logContext: RequestLogContext
    ) -> ServerResponse {
        let error = CacheError(.notCached, "This node has no byte at the beginning of the range.")
        logContext.update { $0.outcome = error.code.name }
        let problem = problem(call, error, status: error.code.contentStatus)
        var fields = problem.fields
        fields[.larderNextByte] = next.map(String.init)
        if isComing { fields[.larderComing] = "1" }
        return response(call, problem.status, fields, .document(problem.body), logContext)
    }

    /// Waits for the first bytes, so that a failure still gets its own status.
    private func content(
        of read: ContentRead, _ call: ContentCall, _ logContext: RequestLogContext
    ) async throws(CacheError) -> ServerResponse {
        logContext.update { $0.outcome = "peer" }
        do {
            let first = read.plan.body.isEmpty ? nil : try await read.next(atMost: ContentBody.firstBytes)
            var fields = HTTPFields(read.plan.headers)
            fields[.age] = read.age.map(\.wholeSecondsText)
            let body = ContentBody(read, logContext: logContext, stopwatch: call.stopwatch)
            return response(
                call, read.plan.status, fields, .content(body, first: first.map { .bytes($0) } ?? .end), logContext)
        } catch {
            logContext.add(read.finish(.failed(error)))
            throw error
        }
    }
}
