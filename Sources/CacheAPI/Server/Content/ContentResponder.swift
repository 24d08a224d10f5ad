import CacheCore
import CacheEngine
import CacheTracing
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1
import ReaderAccess

/// Makes the responses to content requests.
///
/// ``answerAtOnce(_:)`` answers what needs no wait. It applies the same rules as ``answer(_:)`` and produces the same
/// fields, metrics and log entries. If it returns nil, it has left no trace: nothing is counted.
struct ContentResponder: Sendable {
    let reader: ContentReader
    let processor: RequestProcessor
    /// Limits readers to their origins and path prefixes.
    let limits: ReaderLimits
    /// Limits concurrent reads. Reads that are answered at once need no permit.
    let permits: AdmissionLimiter
    /// Whether requests are answered at once if possible (`listen.fastPath`).
    let isFastPathEnabled: Bool
    /// Whether bodies may be sent from the file (`sendfile`); false with TLS, which encrypts copies.
    let sendsFiles: Bool

    var gate: Authorizer { processor.gate }
    var recorder: RequestRecorder { processor.recorder }

    /// The request of `head`. Nil if it does not name content, or if its target is too long: ``APIResponder`` answers it.
    func call(
        _ head: HTTPRequestHead, certificate: ClientCertificate? = nil, client: RequestClient? = nil
    ) -> ContentCall? {
        guard head.uri.utf8.count <= gate.live.values.limits.urlBytes else { return nil }
        let call = processor.call(head, certificate: certificate, client: client)
        return ContentTarget(call.target).map { ContentCall(call: call, content: $0) }
    }

    // MARK: Answers without a wait

    /// Returns the response with the first bytes of its body; nil if ``answer(_:)`` must answer.
    ///
    /// That is the case if the asset is not open and fresh, if bytes are not on disk or not in the page cache, if the
    /// client is not authorized, if `CDN-Loop` names this service, or if the request has `Larder-Timeout` or asks for a
    /// digest.
    func answerAtOnce(_ call: ContentCall) -> ServerResponse? {
        guard isFastPathEnabled, case .mounted(let origin, let path) = call.content,
            !call.fields.contains(.larderTimeout), !call.wantsDigest, !call.isLoop(to: reader.loopName)
        else { return nil }
        let reference = AssetReference.mounted(origin: origin, path: path, key: nil)
        var admission = Admission(nil)
        let read = reader.readIfCached(
            reference, request: ContentRequest(isHead: call.isHead, fields: call.fields)
        ) { access in
            do throws(CacheError) {
                admission = try admit(call, reference, access)
                return true
            } catch {
                return false  // `answer` sends the error to an unauthorized client
            }
        }
        // A paced body is sent in copies.
        let isPaced = admission.reader?.maxBytesPerSecond != nil
        guard let read, let first = first(of: read, fromFile: sendsFiles && !isPaced) else { return nil }
        return content(read, first, call, admission, RequestLogContext(.content), begin(call))
    }

    /// Returns a prepared response for another range; nil if its bytes are not available without a wait.
    ///
    /// - Parameter loggedRange: The range in logs; nil: the request has none.
    func answer(
        _ preparedResponse: PreparedResponse, _ range: ByteRange, at time: Timestamp, client: RequestClient?,
        _ loggedRange: LoggedRange?
    ) -> ServerResponse? {
        let stopwatch = processor.clock.stopwatch()
        guard let read = preparedResponse.view.open(range, at: time),
            let first = first(of: read, fromFile: sendsFiles)
        else { return nil }
        let requestID = processor.random.identifier()
        let head = preparedResponse.template.head(range, of: preparedResponse.view, as: requestID, at: time)
        let logged = preparedResponse.logged
        let logContext = noted(
            read, Admission(preparedResponse.reader), RequestLogContext(.content),
            begin(preparedResponse, client: client))
        logContext.update { $0.range = loggedRange }
        return ServerResponse(
            head: head, body: .content(ContentBody(read, logContext: logContext, stopwatch: stopwatch), first: first),
            logContext: logContext,
            line: AccessLogEntry(
                recorder, logged, client: client?.text, startedAt: time, requestID: requestID,
                status: Int(head.status.code), logContext: logContext, stopwatch: stopwatch),
            logged: logged)
    }

    /// Reads the first bytes. Returns nil and abandons the read if that would block.
    private func first(of read: ContentRead, fromFile: Bool) -> ContentRead.ReadStep? {
        // A failure is ignored: `answer` meets it too and reports it.
        if let first = try? read.nextWithoutBlocking(fromFile: fromFile, wake: {}), first.isAtHand { return first }
        read.abandon()
        return nil
    }

    // MARK: Answers with a wait

    /// Authorizes the request, claims a read permit, and returns the content, or a problem, which may have the
    /// upstream's status. The permit is kept until the response has ended. Cancellation of the task ends the wait.
    func answer(_ call: ContentCall) async -> ServerResponse {
        let (logContext, trace) = (RequestLogContext(call.isOfPeer ? .peer : .content), begin(call))
        logContext.update { content in
            content.span = trace?.span
            content.asset = call.content.assetName
        }
        if call.isOfPeer { return await RequestTrace.$current.withValue(trace) { await answerPeer(call, logContext) } }
        let reference: AssetReference
        do throws(CacheError) {
            reference = try call.content.reference()
        } catch {
            return invalid(call, error, logContext)
        }
        var sharing = ResponseSharing.asStated
        return await RequestTrace.$current.withValue(trace) {
            do {
                var admission = try admit(call, reference, reader.access(for: reference))
                // The upstream has decided by the fields of this reader.
                if reader.forwardsFields(for: reference) { admission.sharing = .readerOnly }
                sharing = admission.sharing
                logContext.update { $0.reader = admission.reader }
                if case .known = reference { try await limits.check(reference, for: admission.reader) }
                logContext.hold(try takePermit())
                let read = try await reader.read(
                    reference, request: request(call), options: ReadOptions(timeout: try call.timeout()))
                return try await content(read, call, admission, logContext, trace)
            } catch let failure as ReadFailure {
                return refusal(call, failure, sharing, logContext)
            } catch {
                return refusal(call, ReadFailure(CacheError(foreign: error)), sharing, logContext)
            }
        }
    }

    func takePermit() throws(CacheError) -> AdmissionLimiter.Permit {
        guard let permit = permits.take() else {
            throw CacheError(.overloaded, "Too many concurrent reads; raise limits.maxConcurrentReads or retry.")
        }
        return permit
    }

    /// The request with the credentials for origins that forward them. Throws `.loop` if it has passed this service
    /// before.
    private func request(_ call: ContentCall) throws(CacheError) -> ContentRequest {
        guard !call.isLoop(to: reader.loopName) else {
            throw CacheError(.loop, "CDN-Loop names this service; check the origin for a loop.")
        }
        // A token of this service is no credential of the upstream.
        let hasToken = gate.access.isOwn(call.credentials, at: gate.wallClock.now())
        return ContentRequest(call, forwardsAuthorization: !hasToken)
    }

    /// Waits for the first bytes of the read, so that a failure still gets its own status: an error, not stored, with
    /// the error code as its detail.
    private func content(
        _ read: ContentRead, _ call: ContentCall, _ admission: Admission, _ logContext: RequestLogContext,
        _ trace: RequestTrace?
    ) async throws(ReadFailure) -> ServerResponse {
        do {
            let digests = await digests(of: read, call)
            let first = read.plan.body.isEmpty ? nil : try await read.next(atMost: ContentBody.firstBytes)
            return content(read, first.map { .bytes($0) } ?? .end, call, admission, logContext, trace, digests)
        } catch {
            logContext.add(read.finish(.failed(error)))
            var outcome = read.outcome
            outcome.requestClass = .error
            (outcome.isStored, outcome.timeToLive, outcome.detail) = (false, nil, error.code.name)
            var failure = ReadFailure(error, outcome: outcome)
            (failure.isCounted, failure.asset) = (true, read.assetName)
            throw failure
        }
    }

    /// The digest fields that the client asks for. `Content-Digest` of a response to HEAD would be that of no bytes.
    private func digests(of read: ContentRead, _ call: ContentCall) async -> HeaderList {
        guard call.wantsDigest else { return [:] }
        let content = call.isHead ? nil : DigestAlgorithm.preferred(in: call.fields[values: .wantContentDigest])
        return await read.digestFields(
            content: content, representation: .preferred(in: call.fields[values: .wantReprDigest]))
    }

    // MARK: Parts of responses

    private func admit(
        _ call: ContentCall, _ reference: AssetReference?, _ access: ContentAccess
    ) throws(CacheError) -> Admission {
        try gate.admitContent(
            call.credentials, call.target, host: call.host, client: call.client, access: access, reference: reference)
    }

    /// The trace of a request.
    private func begin(_ call: ContentCall) -> RequestTrace? {
        processor.trace(call.call, route: call.content.pattern)
    }

    /// The trace of a request with a prepared response. It has no `traceparent`.
    func begin(_ response: PreparedResponse, client: RequestClient?) -> RequestTrace? {
        guard processor.tracing.tracer.isEnabled else { return nil }
        return processor.tracing.begin(
            method: response.logged.method, path: response.logged.path, route: ContentTarget.mountedPattern, nil,
            client: client, server: response.server)
    }

    /// Records the result of a read.
    private func noted(
        _ read: ContentRead, _ admission: Admission, _ logContext: RequestLogContext, _ trace: RequestTrace?
    ) -> RequestLogContext {
        logContext.conclude(read.outcome.requestClass)
        trace?.span?.set("larder.asset.id", read.assetID.description)
        logContext.update { content in
            content.span = trace?.span
            content.reader = admission.reader
            content.asset = read.assetName
            content.upstreamStatus = read.outcome.upstreamStatus
            if read.plan.status == 206, read.plan.neededRanges.count == 1, let range = read.plan.neededRanges.first,
                range.upperBound < .max
            {
                content.range = .bytes(range)
            }
        }
        return logContext
    }

    /// The response for a read. 412 and 416 become problem documents.
    private func content(
        _ read: ContentRead, _ first: ContentRead.ReadStep, _ call: ContentCall, _ admission: Admission,
        _ logContext: RequestLogContext, _ trace: RequestTrace?, _ digests: HeaderList = [:]
    ) -> ServerResponse {
        let logContext = noted(read, admission, logContext, trace)
        let body = ContentBody(read, logContext: logContext, stopwatch: call.stopwatch)
        let isUnmet = [412, 416].contains(read.plan.status)
        var fields = isUnmet ? [:] : read.plannedFields(admission.sharing, at: gate.wallClock.now())
        let problem = isUnmet ? unmet(read.plan, call) : nil
        if let problem {
            body.end(.sent)
            fields = problem.fields
            restrict(&fields, admission.sharing)
            if read.plan.status == 416 { fields[.acceptRanges] = "bytes" }
        }
        for digest in HTTPFields(digests) { fields[digest.name] = digest.value }
        read.sign(&fields)
        if let renewal = admission.renewal, !isUnmet {
            // The renewed cookie of a signature (RFC 9246 §3.3). No cache must keep such a field.
            fields[.setCookie] = renewal.cookie(isEncrypted: call.client?.isEncrypted ?? gate.isEncrypted)
            fields[.cacheControl] = "private, no-store"
        }
        return response(
            call, read.plan.status, fields, problem.map { .document($0.body) } ?? .content(body, first: first),
            logContext,
            isSigned: admission.isSigned)
    }

    /// The problem document for 412 or 416. It uses nothing of the upstream's response but the length, for
    /// `Content-Range` (RFC 9110 §15.5.17).
    private func unmet(_ plan: ContentPlan, _ call: ContentCall) -> Problem {
        guard plan.status == 416 else {
            return problem(call, CacheError(.preconditionFailed, "A condition of the request does not hold."))
        }
        let length = plan.headers["Content-Range"].flatMap { Int64($0.drop { !$0.isNumber }) }
        return problem(
            call, CacheError(.rangeNotSatisfiable(length: length), "The asset has no byte in the requested range."))
    }

    /// The problem document for a failed read, with the upstream's `Retry-After`, `Age` and freshness if there are any.
    func refusal(
        _ call: ContentCall, _ failure: ReadFailure, _ sharing: ResponseSharing, _ logContext: RequestLogContext
    ) -> ServerResponse {
        let (code, outcome) = (failure.error.code, failure.outcome)
        logContext.conclude(outcome.requestClass, code: code, isCounted: failure.isCounted)
        logContext.update { content in
            content.asset = failure.asset ?? content.asset
            content.upstreamStatus = outcome.upstreamStatus
        }
        let problem = problem(call, failure.error, status: code.contentStatus)
        var fields = failure.error.contentHeaders
        fields[.contentType] = Problem.mediaType
        fields[.cacheControl] = failure.reuse
        fields[.cacheStatus] = CacheStatus.field(outcome)
        fields[.age] = failure.age.map(\.wholeSecondsText)
        restrict(&fields, sharing, age: failure.age)
        if outcome.forwarding != nil || outcome.requestClass == .negative { fields.append(.via) }
        return response(call, problem.status, fields, .document(problem.body), logContext)
    }

    /// Restricts the caching fields of a problem document.
    private func restrict(_ fields: inout HTTPFields, _ sharing: ResponseSharing, age: Duration? = nil) {
        guard let stated = fields[.cacheControl], sharing != .asStated else { return }
        let restricted = sharing.restricted(
            ["Cache-Control": stated], age: age, timeToLive: nil, at: gate.wallClock.now())
        fields[.cacheControl] = restricted["Cache-Control"]
        if sharing.restartsAge { fields[.age] = nil }
    }

    /// The problem document for a target without a valid reference. A client without a token gets 401 instead of the
    /// error, which would reveal details.
    private func invalid(_ call: ContentCall, _ error: CacheError, _ logContext: RequestLogContext) -> ServerResponse {
        var error = error
        do throws(CacheError) {
            _ = try admit(call, nil, ContentAccess())
        } catch let refusal {
            error = refusal
        }
        logContext.update { $0.outcome = error.code.name }
        let problem = problem(call, error)
        return response(call, problem.status, problem.fields, .document(problem.body), logContext)
    }

    func problem(_ call: ContentCall, _ error: CacheError, status: Int? = nil) -> Problem {
        processor.problem(call.call, error, status: status)
    }

    func response(
        _ call: ContentCall, _ status: Int, _ fields: HTTPFields, _ body: ResponseBody, _ logContext: RequestLogContext,
        isSigned: Bool = false
    ) -> ServerResponse {
        processor.response(call.call, status, fields, body, logContext, isSigned: isSigned)
    }
}

extension ReadFailure {
    /// The `Cache-Control` of the problem document.
    ///
    /// Without it, caches may choose a lifetime for some statuses (RFC 9110 §15.1). The value is the lifetime that the
    /// upstream gave, else `no-store`. Like `Age`, it counts from the creation of the upstream's response.
    fileprivate var reuse: String {
        guard let left = outcome.timeToLive, left >= .seconds(1) else { return "no-store" }
        // The sum differs from a whole number of seconds by a few milliseconds, because the two times are measured
        // apart.
        return "max-age=" + (left + (age ?? .zero) + .milliseconds(500)).wholeSecondsText
    }
}
