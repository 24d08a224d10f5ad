/// The length that an upstream has stated for a representation, without a body that proves it.
package struct StatedLength: Hashable, Sendable {
    package var length: Int64
    /// The validators of the representation.
    package var validators: Validators

    package init(length: Int64, validators: Validators) {
        self.length = length
        self.validators = validators
    }

    /// The length that an unusable 206 with a strong validator states; nil: none.
    package init?(_ head: UpstreamHead, now: Timestamp) {
        guard head.status == 206, case .run(_, let length?)? = head.headers["Content-Range"].flatMap(ContentRange.parse)
        else { return nil }
        self.init(length: length, validators: Validators.of(head.headers, now: now))
        guard validators.strong != nil else { return nil }
    }

    /// Whether a 200 contradicts it: one strong validator identifies one representation (RFC 9110 §8.8.1), which is
    /// longer. A body of unknown length may be shorter.
    fileprivate func isContradicted(by found: Generation) -> Bool {
        validators.matchesStrongly(found.validators) && found.length ?? 0 < length
    }
}

/// The context of an upstream request, against which its response is judged.
package struct WindowExpectation: Sendable {
    /// The requested range of bytes.
    package var window: UpstreamRequest.Window
    /// The generation known when the request was sent; nil: none, this is the first fill.
    package var known: Generation?
    /// The time of the response.
    package var now: Timestamp
    package var freshness: OriginSettings.Freshness
    /// The validators that the administrator trusts for combining bytes.
    package var trust: OriginSettings.TrustedValidators
    package var storeRules: OriginSettings.StoreRules
    /// The length that an earlier, unusable response stated; nil: none.
    package var stated: StatedLength?
    /// The requested URL, if the reader's own `Authorization` was sent there: the challenge of a 401 is for the reader.
    package var readerURL: String?
    /// The path or URL of the asset, for the type by its extension.
    package var path: String
    /// Whether another node of the fleet sent the response. It proves nothing about the present state of the upstream, so
    /// that it renews no freshness.
    package var isOfPeer = false
    /// Whether a purge was made after the request: the response can be older, and is not fresh.
    package var isOutdated = false

    package init(
        window: UpstreamRequest.Window, known: Generation?, now: Timestamp, freshness: OriginSettings.Freshness,
        trust: OriginSettings.TrustedValidators = .strong,
        storeRules: OriginSettings.StoreRules = OriginSettings.StoreRules(), stated: StatedLength? = nil,
        readerURL: String? = nil, path: String
    ) {
        self.window = window
        self.known = known
        self.now = now
        self.freshness = freshness
        self.trust = trust
        self.storeRules = storeRules
        self.stated = stated
        self.readerURL = readerURL
        self.path = path
    }
}

/// The verdict on an upstream response head, before the first byte of its body is written.
///
/// A generation that is the same representation as the known one has its number.
package enum ResponseVerdict: Sendable {
    /// 206: the body is exactly these bytes of the generation: the requested window, cut at the end of the asset.
    case window(ByteRange, Generation)
    /// 200: the body is the whole generation from its first byte, whatever window was requested.
    case whole(Generation)
    /// 304: the known generation with updated freshness and header fields.
    case unchanged(Generation)
    /// Another representation than the known one, or one that is not proved to be the same, numbered one higher. The
    /// range is the part of it in the body: all for a 200, the requested window for a 206. It is nil if the response
    /// has no usable body.
    case changed(Generation, ByteRange?)
    /// 416, with the length of the asset if the response states it.
    case unsatisfiable(length: Int64?)
    /// The response cannot be used: an error status, or a violation of the protocol.
    case refused(CacheError)

    /// Judges the head of a final response. Total: every response has a verdict.
    package static func judge(_ head: UpstreamHead, expecting: WindowExpectation) -> ResponseVerdict {
        switch head.status {
        case 200, 203: wholeAnswer(head, expecting)
        case 206: windowAnswer(head, expecting)
        case 304: unchangedAnswer(head, expecting)
        case 416 where expecting.window != .whole: unsatisfiedAnswer(head, expecting)
        case 400...:
            .refused(
                CacheError(
                    .upstreamRefused(
                        status: head.status,
                        .init(
                            retryAfter: RetryAfter.wait(in: head.headers, now: expecting.now),
                            challenges: Challenges.of(head, toReaderOf: expecting.readerURL),
                            reason: ErrorDocument(head.excerpt).reason)),
                    "The upstream answered with status \(head.status)."))
        case ..<200: garbled("a final response with status \(head.status)")
        default: passedOn(head, expecting)
        }
    }

    /// Whether the same request without `Range` may succeed: the upstream rejected its form, or sent no usable range.
    package var refusesRange: Bool {
        guard case .refused(let error) = self else { return false }
        return error.code.refusesRange
    }

    /// Whether the response describes a representation that may be stored.
    package var storesBody: Bool {
        switch self {
        case .window(_, let found), .whole(let found), .changed(let found, _), .unchanged(let found):
            found.passedStatus == nil
        case .unsatisfiable, .refused: false
        }
    }

    /// An error response to be passed on with its body. Nil if its status would misinform about the client's request
    /// (authentication, conditions, ranges, connection), or if the response is malformed.
    package static func errorResponse(_ head: UpstreamHead, expecting: WindowExpectation) -> Generation? {
        guard head.status != 401, CacheError.Code.isPassedOn(head.status) else { return nil }
        switch passedOn(head, expecting) {
        case .whole(let found), .changed(let found, _): return found
        default: return nil
        }
    }

    /// The generation of an asset that a 416 with `bytes */0` shows to be empty. The fields of the response describe an
    /// error, so only its validators and freshness are used.
    package static func emptyAsset(_ head: UpstreamHead, expecting: WindowExpectation) -> Generation {
        var bare = head
        bare.headers.remove("Content-Type")
        // Without an explicit lifetime a 416 is stale: heuristic freshness does not apply to this status
        // (RFC 9110 §15.1).
        var expecting = expecting
        if expecting.freshness == .respect { expecting.freshness = .explicit }
        var generation = Generation.described(by: bare, expecting: expecting, length: 0, acceptsRanges: nil)
        generation.headers = [:]
        generation.number = (expecting.known?.number ?? 0) + 1
        return generation
    }

    /// Judges a 200 or 203.
    private static func wholeAnswer(_ head: UpstreamHead, _ expecting: WindowExpectation) -> ResponseVerdict {
        if let refusal = transferCodingRefusal(head.headers) { return refusal }
        if contentCoding(head.headers) != nil { return passedOn(head, expecting) }
        let stated = ContentLength.read(head.headers)
        guard stated != .garbled else { return badLength }
        var found = Generation.described(
            by: head, expecting: expecting, length: stated.count, acceptsRanges: rangeHint(head.headers))
        if expecting.stated?.isContradicted(by: found) ?? false { return passedOn(head, expecting) }
        if let known = expecting.known {
            guard found.isSameRepresentation(as: known, trusting: expecting.trust) else {
                if found.contradicts(known) { return passedOn(head, expecting) }
                found.number = known.number + 1
                return .changed(found, 0..<(found.length ?? .max))
            }
            found = found.replacing(known)
        }
        if ignoredRange(expecting.window, found) { found.acceptsRanges = false }
        return .whole(found)
    }

    /// Whether a 200 shows that the upstream ignores ranges. It does not if the window covered the whole asset. A
    /// server that supports ranges may answer such a request with 200, and states the support in `Accept-Ranges`.
    private static func ignoredRange(_ window: UpstreamRequest.Window, _ found: Generation) -> Bool {
        let length = found.length
        return switch window {
        case .whole: false
        case .closed(let run): !(run.lowerBound == 0 && (length.map { $0 <= run.upperBound } ?? false))
        case .from(let first): first > 0 || found.acceptsRanges != true
        case .suffix(let count): !(length.map { $0 <= count } ?? false)
        }
    }

    /// Judges a 206: exactly one range, which must match the window, in identity coding.
    private static func windowAnswer(_ head: UpstreamHead, _ expecting: WindowExpectation) -> ResponseVerdict {
        if let refusal = transferCodingRefusal(head.headers) { return refusal }
        if let coding = contentCoding(head.headers) {
            return garbled(
                "a part of a body encoded as \(coding.prefix(32)), although only identity was requested", asRange: true)
        }
        if let type = head.headers["Content-Type"], MediaType.essence(type) == "multipart/byteranges" {
            return garbled("several ranges although one was requested", asRange: true)
        }
        let ranges = Set(head.headers.values("Content-Range"))
        guard ranges.count == 1, let text = ranges.first, case .run(let run, let length)? = ContentRange.parse(text)
        else { return garbled("a 206 without exactly one valid Content-Range", asRange: true) }
        switch ContentLength.read(head.headers) {
        case .absent: break
        case .bytes(let count) where count == run.length: break
        case .bytes, .garbled: return garbled("a Content-Length that differs from its Content-Range", asRange: true)
        }
        var found = Generation.described(by: head, expecting: expecting, length: length, acceptsRanges: true)
        if let known = expecting.known {
            guard found.isSameRepresentation(as: known, trusting: expecting.trust) else {
                found.number = known.number + 1
                return .changed(found, covers(run, expecting.window, length: found.length) ? run : nil)
            }
            found = expecting.isOfPeer ? known : known.continued(by: found, head, expecting)
        }
        guard covers(run, expecting.window, length: found.length) else {
            return garbled("\(text), which is not the requested range", asRange: true)
        }
        return .window(run, found)
    }

    /// Whether `run` begins the range that `window` requests in an asset of that length. It may be shorter: a server may
    /// send a part of the requested range (RFC 9110 §15.3.7).
    private static func covers(_ run: ByteRange, _ window: UpstreamRequest.Window, length: Int64?) -> Bool {
        if let length, run.upperBound > length { return false }
        switch window {
        case .whole: return false
        case .closed(let asked): return run.lowerBound == asked.lowerBound && run.upperBound <= asked.upperBound
        case .from(let first): return run.lowerBound == first
        case .suffix(let count): return length.map { run.lowerBound == max(0, $0 - count) } ?? false
        }
    }

    /// Judges a 304.
    private static func unchangedAnswer(_ head: UpstreamHead, _ expecting: WindowExpectation) -> ResponseVerdict {
        guard let known = expecting.known else { return garbled("a 304 in response to a request without a condition") }
        guard confirms(Validators.of(head.headers, now: expecting.now), known.validators) else {
            var unknown = Generation(receivedAt: expecting.now)
            unknown.number = known.number + 1
            return .changed(unknown, nil)
        }
        return .unchanged(known.confirmed(by: head, expecting: expecting))
    }

    /// Whether a 304 with these validators refers to the known representation (RFC 9111 §4.3.4). If not, the known one
    /// is obsolete, and the upstream must be requested without a condition.
    private static func confirms(_ said: Validators, _ known: Validators) -> Bool {
        if let tag = said.entityTag, let knownTag = known.entityTag { return tag.matchesWeakly(knownTag) }
        guard said.lastModifiedIsStrong, let knownDate = known.lastModified else { return true }
        return said.lastModified == knownDate
    }

    /// A response that is neither stored nor divided into ranges, but passed on to the client: another 2xx, a redirect
    /// without a target, a body in a content coding, or one that is shorter than another response has stated.
    private static func passedOn(_ head: UpstreamHead, _ expecting: WindowExpectation) -> ResponseVerdict {
        if let refusal = transferCodingRefusal(head.headers) { return refusal }
        let stated = ContentLength.read(head.headers)
        guard stated != .garbled else { return badLength }
        // A 204 has no body, whatever it states; a 205 has none unless it states one (RFC 9110 §15.3.5, §15.3.6).
        let length = head.status == 204 ? 0 : stated.count ?? (head.status == 205 ? 0 : nil)
        var found = Generation.described(by: head, expecting: expecting, length: length, acceptsRanges: false)
        found.passedStatus = head.status
        found.isStorable = false
        found.freshUntil = nil
        for coding in head.headers.values("Content-Encoding") where FieldText.isValue(coding) {
            if let coding = withoutUploadCoding(coding) { found.headers.append("Content-Encoding", coding) }
        }
        guard let known = expecting.known else { return .whole(found) }
        found.number = known.number + 1
        return .changed(found, 0..<(length ?? .max))
    }

    /// The first content coding of the stored bytes other than identity, the only accepted one (RFC 9110 §12.5.3); nil:
    /// there is none.
    private static func contentCoding(_ headers: HeaderList) -> String? {
        let codings = headers.values("Content-Encoding").flatMap { FieldText.members(of: $0) }
        return codings.first { !["identity", uploadCoding].contains(FieldText.lowered($0)) }.map { String($0) }
    }

    /// The coding of uploads to S3 ("Signature calculations for the Authorization header: transferring payload in
    /// multiple chunks", Amazon S3 API reference). It frames the body of the upload and is no coding of the stored bytes.
    /// Compatible stores repeat it in responses.
    private static let uploadCoding = "aws-chunked"

    /// A `Content-Encoding` value without the coding of uploads; nil if nothing is left.
    private static func withoutUploadCoding(_ value: String) -> String? {
        let members = FieldText.members(of: value)
        let codings = members.filter { FieldText.lowered($0) != uploadCoding }
        guard codings.count < members.count else { return value }
        return codings.isEmpty ? nil : codings.joined(separator: ", ")
    }

    /// Refuses transfer codings other than chunked (RFC 9112 §7.4); nil: the response has none of them.
    private static func transferCodingRefusal(_ headers: HeaderList) -> ResponseVerdict? {
        let transfer = headers.values("Transfer-Encoding").flatMap { FieldText.members(of: $0) }
            .map { FieldText.lowered($0) }.filter { $0 != "identity" }
        guard transfer.isEmpty || transfer == ["chunked"] else {
            return garbled("a transfer coding other than chunked")
        }
        return nil
    }

    private static let badLength = ResponseVerdict.refused(
        CacheError(.upstreamProtocol, "The upstream sent a contradictory or invalid Content-Length."))

    /// Judges a 416. A range from the first byte on, or a suffix, can be unsatisfiable only for an empty asset
    /// (RFC 9110 §14.1.2).
    private static func unsatisfiedAnswer(_ head: UpstreamHead, _ expecting: WindowExpectation) -> ResponseVerdict {
        let length = unsatisfiedLength(head.headers)
        let isContradiction =
            switch expecting.window {
            case .whole: false
            case .closed(let run): length.map { $0 > run.lowerBound } ?? (run.lowerBound == 0)
            case .from(let first): length.map { $0 > first } ?? (first == 0)
            case .suffix: length != nil && length != 0
            }
        return isContradiction
            ? garbled("a 416 for a range that lies within the asset", asRange: true) : .unsatisfiable(length: length)
    }

    /// The length that a 416 states in `Content-Range`; nil: none.
    private static func unsatisfiedLength(_ headers: HeaderList) -> Int64? {
        guard case .unsatisfied(let length)? = headers["Content-Range"].flatMap(ContentRange.parse) else { return nil }
        return length
    }

    /// Range support according to `Accept-Ranges`; nil: not stated.
    private static func rangeHint(_ headers: HeaderList) -> Bool? {
        let units = headers.values("Accept-Ranges").flatMap { FieldText.members(of: $0) }.map { FieldText.lowered($0) }
        if units.contains("bytes") { return true }
        return units.contains("none") ? false : nil
    }

    /// A refusal; `what` completes the sentence "The upstream sent …". `asRange`: a request without `Range` may
    /// succeed.
    private static func garbled(_ what: String, asRange: Bool = false) -> ResponseVerdict {
        .refused(CacheError(.upstreamUnusable(asRange: asRange), "The upstream sent \(what)."))
    }
}

extension CacheError.Code {
    /// Whether the upstream may answer the same request without `Range`, which a server may ignore (RFC 9110 §14.2):
    /// the status may concern the form of the request, not the resource.
    package var refusesRange: Bool {
        switch self {
        case .upstreamUnusable(let asRange): asRange
        case .upstreamRefused(let status, let fields):
            fields.reason == nil && [400, 403, 406, 416, 501].contains(status)
        default: false
        }
    }
}
