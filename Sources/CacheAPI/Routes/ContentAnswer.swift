import CacheCore
import CacheEngine
import HTTPTypes
import Hummingbird

/// The response to one request for content.
struct ContentAnswer {
    let request: Request
    let context: APIContext

    /// What the read's plan says; a condition that does not hold, and a range that is nowhere, as problems.
    func content(_ opening: ContentOpening) -> Response {
        let read = opening.read
        context.note.update { $0.outcome = read.outcome.requestClass.rawValue }
        var response = [412, 416].contains(read.plan.status) ? unmet(opening) : planned(opening)
        read.sign(&response.headers)
        return response
    }

    /// A problem, with what the upstream said of it that readers can use.
    func refusal(_ failure: ReadFailure) -> Response {
        let (code, outcome) = (failure.error.code, failure.outcome)
        context.note.update {
            $0.outcome = outcome.requestClass == .error ? code.name : outcome.requestClass.rawValue
        }
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

    private func planned(_ opening: ContentOpening) -> Response {
        let read = opening.read
        var response = Response(status: .init(code: read.plan.status), body: body(opening))
        response.headers = read.plannedFields
        return response
    }

    /// 412 and 416: made here and now, of nothing that the upstream said but the length (RFC 9110 §15.5.17).
    private func unmet(_ opening: ContentOpening) -> Response {
        opening.body.end(.sent)
        let plan = opening.read.plan
        guard plan.status == 416 else {
            return problem(CacheError(.preconditionFailed, "A condition does not hold."))
        }
        let length = plan.headers["Content-Range"].flatMap { Int64($0.drop { !$0.isNumber }) }
        var response = problem(
            CacheError(.rangeNotSatisfiable(length: length), "No byte of the range is in the asset."))
        response.headers[.acceptRanges] = "bytes"
        return response
    }

    private func problem(_ error: CacheError, status: Int? = nil) -> Response {
        Problem(error, status: status, instance: request.uri.path, requestID: context.requestID).response
    }

    /// The body; nothing where the plan has none, or for HEAD.
    private func body(_ opening: ContentOpening) -> ResponseBody {
        let (plan, body) = (opening.read.plan, opening.body)
        guard !plan.body.isEmpty, request.method != .head else {
            body.end(.sent)
            return ResponseBody()
        }
        let door = context.bodyDoor
        return ResponseBody(contentLength: plan.contentLength.flatMap { Int(exactly: $0) }) { writer in
            guard let door else { throw CacheError(.internal, "The request came on no connection.") }
            try await door.send(body, first: opening.first)
            try await writer.finish(nil)
        }
    }

    /// Caches may give some statuses a lifetime of their own making (RFC 9110 §15.1): a refusal lives as long as the
    /// upstream said, and without such a word not at all. Counted from the refusal's birth, as `Age` is.
    private static func reuse(_ failure: ReadFailure) -> String {
        guard let left = failure.outcome.timeToLive, left >= .seconds(1) else { return "no-store" }
        // Both are a few milliseconds off a whole lifetime.
        return "max-age=" + (left + (failure.age ?? .zero) + .milliseconds(500)).wholeSecondsText
    }
}
