import CacheCore
import CacheEngine
import CacheTracing
import HTTPTypes
import Hummingbird

/// Builds the response to one content request on the regular path.
struct ContentResponseBuilder {
    let request: Request
    let context: APIContext

    /// The response for a started read. 412 and 416 become problem documents.
    func content(_ opening: StartedRead) -> Response {
        let read = opening.read
        context.note.conclude(read.outcome.requestClass)
        context.note.content.span?.set("larder.asset.id", read.assetID.description)
        var response = [412, 416].contains(read.plan.status) ? unmet(opening) : planned(opening)
        read.sign(&response.headers)
        return response
    }

    /// The problem document for a failed read, with the upstream's `Retry-After`, `Age` and freshness if there are any.
    func refusal(_ failure: ReadFailure) -> Response {
        let (code, outcome) = (failure.error.code, failure.outcome)
        context.note.conclude(outcome.requestClass, code: code, isCounted: failure.isCounted)
        var response = problem(failure.error, status: code.contentStatus)
        let length = response.headers[.contentLength]
        response.headers = code.contentHeaders
        response.headers[.contentLength] = length
        response.headers[.contentType] = Problem.mediaType
        response.headers[.cacheControl] = Self.reuse(failure)
        response.headers[.cacheStatus] = CacheStatus.field(outcome)
        response.headers[.age] = failure.age.map(\.wholeSecondsText)
        if outcome.forwarding != nil || outcome.requestClass == .negative {
            response.headers.append(.via)
        }
        return response
    }

    /// The response that the read's plan describes.
    private func planned(_ opening: StartedRead) -> Response {
        let read = opening.read
        var response = Response(status: .init(code: read.plan.status), body: body(opening))
        response.headers = read.plannedFields
        return response
    }

    /// The problem document for 412 or 416. It uses nothing of the upstream's response but the length, for
    /// `Content-Range` (RFC 9110 §15.5.17).
    private func unmet(_ opening: StartedRead) -> Response {
        opening.body.end(.sent)
        let plan = opening.read.plan
        guard plan.status == 416 else {
            return problem(CacheError(.preconditionFailed, "A condition of the request does not hold."))
        }
        let length = plan.headers["Content-Range"].flatMap { Int64($0.drop { !$0.isNumber }) }
        var response = problem(
            CacheError(.rangeNotSatisfiable(length: length), "The asset has no byte in the requested range."))
        response.headers[.acceptRanges] = "bytes"
        return response
    }

    /// The problem document for an error.
    private func problem(_ error: CacheError, status: Int? = nil) -> Response {
        Problem(error, status: status, instance: request.uri.path, requestID: context.requestID).response
    }

    /// The body; empty for HEAD and for a plan without a body. The bytes are sent by ``BodyStreamHandler``.
    private func body(_ opening: StartedRead) -> ResponseBody {
        let (plan, body) = (opening.read.plan, opening.body)
        guard !plan.body.isEmpty, request.method != .head else {
            body.end(.sent)
            return ResponseBody()
        }
        let bodyStream = context.bodyStream
        return ResponseBody(contentLength: plan.contentLength.flatMap { Int(exactly: $0) }) { writer in
            guard let bodyStream else {
                throw CacheError(.internal, "The request has no connection to send a body on.")
            }
            try await bodyStream.send(body, first: opening.first)
            try await writer.finish(nil)
        }
    }

    /// The `Cache-Control` of a problem document.
    ///
    /// Without it, caches may choose a lifetime for some statuses (RFC 9110 §15.1). The value is the lifetime that the
    /// upstream gave, else `no-store`. Like `Age`, it counts from the creation of the upstream's response.
    private static func reuse(_ failure: ReadFailure) -> String {
        guard let left = failure.outcome.timeToLive, left >= .seconds(1) else { return "no-store" }
        // The sum differs from a whole number of seconds by a few milliseconds, because the two times are measured
        // apart.
        return "max-age=" + (left + (failure.age ?? .zero) + .milliseconds(500)).wholeSecondsText
    }
}
