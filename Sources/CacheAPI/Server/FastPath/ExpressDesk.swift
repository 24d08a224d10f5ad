import CacheCore
import CacheEngine
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1

/// Answers requests for content that is at hand, by the rules and in the words of the regular road; what it does not
/// answer at once is left to that one, as if nothing had been tried.
struct ExpressDesk: Sendable {
    let cache: AssetCache
    let gate: Gate
    let urlBytes: Int
    let chance: any Chance
    let clock: any Clock<Duration>
    let logger: Logger

    /// Whether there is an access log.
    let isLogged: Bool

    init(
        cache: AssetCache, gate: Gate, urlBytes: Int, chance: any Chance, clock: any Clock<Duration>, logger: Logger
    ) {
        self.cache = cache
        self.gate = gate
        self.urlBytes = urlBytes
        self.chance = chance
        self.clock = clock
        self.logger = logger
        isLogged = logger.logLevel <= .info
    }

    /// Fields that want more than content at once.
    private static let refused = [
        "Content-Length", "Transfer-Encoding", "Expect", "Upgrade", HTTPField.Name.larderTimeout.rawName,
    ]

    /// Whether the request's head allows an answer here: the rest of the request is awaited then.
    static func takes(_ head: HTTPRequestHead) -> Bool {
        (head.method == .GET || head.method == .HEAD) && head.version == .http1_1 && head.uri.hasPrefix("/o/")
            && !refused.contains { head.headers.contains(name: $0) }
    }

    /// The answer, with its first bytes; nil where the regular road must give it.
    func answer(_ head: HTTPRequestHead) -> ExpressAnswer? {
        guard let reference = reference(head.uri) else { return nil }
        let stopwatch = Stopwatch(clock)
        let fields = HTTPFields(head.headers, splitCookie: false)
        guard !ContentController.isLoop(fields[values: .cdnLoop], to: cache.loopName) else { return nil }
        let request = ContentRequest(isHead: head.method == .HEAD, fields: fields)
        let read = cache.readAtOnce(reference, request: request) { access in
            let host = head.headers.first(name: "Host")
            // Who is not admitted is told so on the regular road.
            return (try? gate.admitContent(authorization: fields[.authorization], host: host, access: access)) != nil
        }
        guard let read, let first = first(of: read) else { return nil }
        let requestID = Envelope.accepted(fields[.requestID]) ?? chance.identifier()
        var answered = read.plannedFields
        read.sign(&answered)
        Envelope.address(&answered, to: fields[.origin], as: requestID, by: gate.cors)
        let response = HTTPResponse(status: .init(code: read.plan.status), headerFields: answered)
        let path = String(head.uri.prefix { $0 != "?" })
        return answer(
            HTTPResponseHead(response), read, first, method: head.method.rawValue, path: path, as: requestID, stopwatch)
    }

    /// `reprise` once more, for `run`; nil where that is not at hand.
    func answer(_ reprise: Reprise, _ run: ByteRange, at time: Timestamp) -> ExpressAnswer? {
        let stopwatch = Stopwatch(clock)
        guard let read = reprise.view.open(run, at: time), let first = first(of: read) else { return nil }
        let requestID = chance.identifier()
        let head = reprise.form.head(run, of: reprise.view, as: requestID, at: time)
        return answer(head, read, first, method: "GET", path: reprise.path, as: requestID, stopwatch)
    }

    /// The first bytes; nil where they are not at hand: the read is given up then.
    private func first(of read: ContentRead) -> ContentRead.Turn? {
        // A failure is told by the regular road, which meets it too.
        if let first = try? read.nextAtOnce(fromFile: true, wake: {}), first.isAtHand { return first }
        read.abandon()
        return nil
    }

    private func answer(
        _ head: HTTPResponseHead, _ read: ContentRead, _ first: ContentRead.Turn, method: String, path: String,
        as requestID: String, _ stopwatch: Stopwatch
    ) -> ExpressAnswer {
        let note = RequestNote()
        note.update { $0.outcome = read.outcome.requestClass.rawValue }
        let line = AccessLine(
            logger: logger, method: method, path: path, requestID: requestID, status: Int(head.status.code),
            note: note, stopwatch: stopwatch)
        let body = ContentBody(read, note: note, stopwatch: stopwatch)
        return ExpressAnswer(head: head, body: body, first: first, note: note, line: line)
    }

    /// What the router makes of the target; nil where that takes more than a look.
    private func reference(_ target: String) -> AssetReference? {
        guard target.utf8.count <= urlBytes, target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x23 }) else {
            return nil
        }
        let rest = target.dropFirst(3)
        guard let slash = rest.firstIndex(of: "/"), Origin.isValid(name: String(rest[..<slash])) else { return nil }
        // A path without a segment is no path below a mount.
        guard rest[slash...].first(where: { $0 != "/" }).map({ $0 != "?" }) ?? false else { return nil }
        return .mounted(origin: String(rest[..<slash]), path: String(rest[slash...]), key: nil)
    }
}
