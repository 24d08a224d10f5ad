import CacheCore
import CacheEngine
import CacheTracing
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1
import ReaderAccess

/// Decides whether a content request can be answered without a wait, and builds that response.
///
/// It applies the same rules as the regular path and produces the same fields, metrics and log entries. If it returns
/// nil, it has left no trace: nothing is counted, and the regular path answers the request.
struct FastPathResponder: Sendable {
    let reader: ContentReader
    let gate: Authorizer
    /// Whether bodies may be sent from the file (`sendfile`); false with TLS, which encrypts copies.
    let sendsFiles: Bool
    let random: any RandomSource
    let clock: any Clock<Duration>
    let recorder: RequestRecorder
    let tracing: RequestTracing

    init(
        reader: ContentReader, gate: Authorizer, sendsFiles: Bool = true, random: any RandomSource,
        clock: any Clock<Duration>, recorder: RequestRecorder,
        tracing: RequestTracing = RequestTracing(tracer: .disabled)
    ) {
        self.reader = reader
        self.gate = gate
        self.sendsFiles = sendsFiles
        self.random = random
        self.clock = clock
        self.recorder = recorder
        self.tracing = tracing
    }

    /// Fields that require the regular path: a request body, an upgrade, or a time limit for a wait.
    private static let refused = [
        "Content-Length", "Transfer-Encoding", "Expect", "Upgrade", HTTPField.Name.larderTimeout.rawName,
    ]

    /// Whether the request is a candidate for the fast path, judged by its head alone: GET or HEAD in HTTP/1.1 below
    /// `/o/` without ``refused`` fields.
    static func takes(_ head: HTTPRequestHead) -> Bool {
        (head.method == .GET || head.method == .HEAD) && head.version == .http1_1
            && (head.uri.utf8.starts(with: "/o/".utf8) || head.uri.utf8.starts(with: "/t/".utf8))
            && !refused.contains { head.headers.contains(name: $0) }
    }

    /// Returns the response with the first bytes of its body; nil if the regular path must answer.
    ///
    /// That is the case if the asset is not open and fresh, if bytes are not on disk or not in the page cache, if the
    /// client is not authorized, or if `CDN-Loop` names this service.
    ///
    /// - Parameter client: The client's address, for the log; evaluated only if it is needed.
    func answer(
        _ head: HTTPRequestHead, certificate: ClientCertificate? = nil, client: @autoclosure () -> String? = nil
    ) -> FastPathResponse? {
        let (target, signature) = gate.access.strip(head.uri)
        guard head.uri.utf8.count <= gate.live.values.limits.urlBytes, let reference = reference(target) else {
            return nil
        }
        let stopwatch = clock.stopwatch()
        let fields = HTTPFields(head.headers, splitCookie: false)
        guard !ContentController.isLoop(fields[values: .cdnLoop], to: reader.loopName) else { return nil }
        let request = ContentRequest(isHead: head.method == .HEAD, fields: fields)
        let credentials = RequestCredentials(fields, subjects: certificate?.subjects ?? [], signature: signature)
        var admission = Admission(nil)
        let read = reader.readIfCached(reference, request: request) { access in
            do throws(CacheError) {
                admission = try gate.admitContent(
                    credentials, target, host: head.headers.first(name: "Host"), access: access,
                    reference: reference)
            } catch {
                return false  // the regular path sends the error to an unauthorized client
            }
            // The regular path limits the rate of a reader, and sets cookies.
            return admission.reader?.maxBytesPerSecond == nil && admission.renewal == nil
        }
        guard let read, let first = first(of: read) else { return nil }
        let requestID = RequestMiddleware.accepted(fields[.requestID]) ?? random.identifier()
        var answered = read.plannedFields
        read.sign(&answered)
        RequestMiddleware.address(&answered, to: fields[.origin], as: requestID, by: gate.cors)
        let response = HTTPResponse(status: .init(code: read.plan.status), headerFields: answered)
        var logged = LoggedRequest(method: head.method.rawValue, path: target)
        if recorder.log.isEnabled {
            (logged.client, logged.userAgent) = (client(), fields[.userAgent])
            logged.referer = fields[.referer].map(LoggedRequest.withoutCredentials)
            logged.token = admission.reader?.id
        }
        let trace = tracing.begin(method: logged.method, path: logged.path, route: Self.route, fields)
        return answer(HTTPResponseHead(response), read, first, logged, admission, as: requestID, trace, stopwatch)
    }

    /// Returns a prepared response for another range; nil if its bytes are not available without a wait.
    func answer(_ preparedResponse: PreparedResponse, _ run: ByteRange, at time: Timestamp, client: String?)
        -> FastPathResponse?
    {
        let stopwatch = clock.stopwatch()
        guard let read = preparedResponse.view.open(run, at: time), let first = first(of: read) else { return nil }
        let requestID = random.identifier()
        let head = preparedResponse.form.head(run, of: preparedResponse.view, as: requestID, at: time)
        let logged = preparedResponse.logged(for: client)
        return answer(
            head, read, first, logged, Admission(preparedResponse.reader), as: requestID, begin(logged), stopwatch)
    }

    /// The trace of a request that ``PreparedResponseHandler`` answers. It has no `traceparent`.
    func begin(_ logged: LoggedRequest) -> RequestTrace? {
        tracing.begin(method: logged.method, path: logged.path, route: Self.route, nil)
    }

    private static let route = "/o/{origin}/{path}"

    /// Reads the first bytes. Returns nil and abandons the read if that would block.
    private func first(of read: ContentRead) -> ContentRead.ReadStep? {
        // A failure is ignored: the regular path meets it too and reports it.
        if let first = try? read.nextWithoutBlocking(fromFile: sendsFiles, wake: {}), first.isAtHand { return first }
        read.abandon()
        return nil
    }

    /// Combines head, body and access log entry.
    private func answer(
        _ head: HTTPResponseHead, _ read: ContentRead, _ first: ContentRead.ReadStep, _ logged: LoggedRequest,
        _ admission: Admission, as requestID: String, _ trace: RequestTrace?,
        _ stopwatch: @escaping @Sendable () -> Duration
    ) -> FastPathResponse {
        let note = RequestLogContext()
        note.conclude(read.outcome.requestClass)
        trace?.span?.set("larder.asset.id", read.assetID.description)
        note.update { content in
            content.span = trace?.span
            content.reader = admission.reader
        }
        let line = AccessLogEntry(
            recorder, logged, requestID: requestID, status: Int(head.status.code), note: note, stopwatch: stopwatch)
        let body = ContentBody(read, note: note, stopwatch: stopwatch)
        return FastPathResponse(
            head: head, body: body, first: first, note: note, line: line, logged: logged,
            isSigned: admission.isSigned)
    }

    /// The asset that the router would derive from the target. Nil for targets that need more than a simple check: with
    /// blanks, control characters, non-ASCII bytes or `#`, with an invalid origin name, or with an empty path.
    private func reference(_ target: String) -> AssetReference? {
        guard target.utf8.starts(with: "/o/".utf8),
            target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x23 })
        else { return nil }
        let rest = target.dropFirst(3)
        guard let slash = rest.firstIndex(of: "/"), Origin.isValid(name: String(rest[..<slash])) else { return nil }
        // The path below the origin must contain a segment that is not empty.
        guard rest[slash...].first(where: { $0 != "/" }).map({ $0 != "?" }) ?? false else { return nil }
        return .mounted(origin: String(rest[..<slash]), path: String(rest[slash...]), key: nil)
    }
}
