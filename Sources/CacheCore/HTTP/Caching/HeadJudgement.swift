/// What a request upstream was for, and what was known when it left.
package struct WindowExpectation: Sendable {
    package var window: UpstreamRequest.Window
    /// Nil: the asset's first fill.
    package var known: Generation?
    package var now: Timestamp
    package var freshness: OriginSettings.Freshness
    package var trust: OriginSettings.TrustedValidators
    package var storeRules: OriginSettings.StoreRules
    /// The asset's path or URL, for its extension.
    package var path: String

    package init(
        window: UpstreamRequest.Window, known: Generation?, now: Timestamp, freshness: OriginSettings.Freshness,
        trust: OriginSettings.TrustedValidators = .strong,
        storeRules: OriginSettings.StoreRules = OriginSettings.StoreRules(), path: String
    ) {
        self.window = window
        self.known = known
        self.now = now
        self.freshness = freshness
        self.trust = trust
        self.storeRules = storeRules
        self.path = path
    }
}

/// What an upstream's response head proves about the bytes behind it, before the first of them is written.
///
/// Generations in it carry the number of the known one where they are the same representation.
package enum HeadJudgement: Sendable {
    /// 206: the body is exactly these bytes of that generation; the window asked for, or what the asset's end leaves of
    /// it.
    case window(ByteRange, Generation)
    /// 200: the body is all of that generation from its first byte, whatever window was asked for.
    case whole(Generation)
    /// 304: the known generation, its freshness and header fields renewed.
    case unchanged(Generation)
    /// Another representation than the known one, or none that is proved to be the same. The generation describes it,
    /// numbered one higher. The range is the part of it in the body: all after a 200, the requested window after a 206; nil
    /// where the response has no body that can be used.
    case changed(Generation, ByteRange?)
    /// 416, and the length where it was said.
    case unsatisfiable(length: Int64?)
    case refused(CacheError)

    /// Judges a final response's head. Total: whatever an upstream sends has a judgement.
    package static func judge(_ head: UpstreamHead, expecting: WindowExpectation) -> HeadJudgement {
        switch head.status {
        case 200, 203: wholeAnswer(head, expecting)
        case 206: windowAnswer(head, expecting)
        case 304: unchangedAnswer(head, expecting)
        case 416 where expecting.window != .whole: unsatisfiedAnswer(head, expecting)
        case 400...:
            .refused(
                CacheError(
                    .upstreamRefused(
                        status: head.status, retryAfter: RetryAfter.wait(in: head.headers, now: expecting.now)),
                    "The upstream answered with status \(head.status)."))
        case ..<200: garbled("a final response with status \(head.status)")
        default: passedOn(head, expecting)
        }
    }

    /// Whether the upstream may answer a request without `Range`: it refused this one for its form, or sent no usable
    /// range.
    package var refusesRange: Bool {
        guard case .refused(let error) = self else { return false }
        return error.code.refusesRange
    }

    /// An error response as it came, to be passed on with its body; nil where its status would say something untrue of the
    /// client's request, or the response is broken.
    package static func errorResponse(_ head: UpstreamHead, expecting: WindowExpectation) -> Generation? {
        guard (400...599).contains(head.status), ![401, 407, 412, 416, 417, 421, 426, 431, 511].contains(head.status)
        else { return nil }
        switch passedOn(head, expecting) {
        case .whole(let found), .changed(let found, _): return found
        default: return nil
        }
    }

    /// The generation of an asset found empty by a 416 that said `bytes */0`; its fields describe an error, so that
    /// only validators and freshness are taken.
    package static func emptyAsset(_ head: UpstreamHead, expecting: WindowExpectation) -> Generation {
        var bare = head
        bare.headers.remove("Content-Type")
        // A 416 without a lifetime has none: nothing may be guessed for this status (RFC 9110 §15.1).
        var expecting = expecting
        if expecting.freshness == .respect { expecting.freshness = .explicit }
        var generation = Generation.described(by: bare, expecting: expecting, length: 0, acceptsRanges: nil)
        generation.headers = [:]
        generation.number = (expecting.known?.number ?? 0) + 1
        return generation
    }

    private static func wholeAnswer(_ head: UpstreamHead, _ expecting: WindowExpectation) -> HeadJudgement {
        if let refusal = transferCodingRefusal(head.headers) { return refusal }
        if contentCoding(head.headers) != nil { return passedOn(head, expecting) }
        let stated = ContentLength.read(head.headers)
        guard stated != .garbled else { return badLength }
        var found = Generation.described(
            by: head, expecting: expecting, length: stated.count, acceptsRanges: rangeHint(head.headers))
        if let known = expecting.known {
            guard found.isSameRepresentation(as: known, trusting: expecting.trust) else {
                found.number = known.number + 1
                return .changed(found, 0..<(found.length ?? .max))
            }
            found = found.replacing(known)
        }
        if ignoredRange(expecting.window, found) { found.acceptsRanges = false }
        return .whole(found)
    }

    /// Whether a 200 shows that the upstream ignores ranges: not where the window covered the whole asset anyway.
    /// A server that supports ranges and answers the range of the whole asset with 200 says so in `Accept-Ranges`.
    private static func ignoredRange(_ window: UpstreamRequest.Window, _ found: Generation) -> Bool {
        let length = found.length
        return switch window {
        case .whole: false
        case .closed(let run): !(run.lowerBound == 0 && (length.map { $0 <= run.upperBound } ?? false))
        case .from(let first): first > 0 || found.acceptsRanges != true
        case .suffix(let count): !(length.map { $0 <= count } ?? false)
        }
    }

    private static func windowAnswer(_ head: UpstreamHead, _ expecting: WindowExpectation) -> HeadJudgement {
        if let refusal = transferCodingRefusal(head.headers) { return refusal }
        if let coding = contentCoding(head.headers) {
            return garbled(
                "a part of a body encoded as \(coding.prefix(32)), though only identity is accepted", asRange: true)
        }
        if let type = head.headers["Content-Type"], MediaType.essence(type) == "multipart/byteranges" {
            return garbled("several ranges where one was asked for", asRange: true)
        }
        let ranges = Set(head.headers.values("Content-Range"))
        guard ranges.count == 1, let text = ranges.first, case .run(let run, let length)? = ContentRange.parse(text)
        else { return garbled("a 206 without one readable Content-Range", asRange: true) }
        switch ContentLength.read(head.headers) {
        case .absent: break
        case .bytes(let count) where count == run.length: break
        case .bytes, .garbled: return garbled("a Content-Length that is not the Content-Range's", asRange: true)
        }
        var found = Generation.described(by: head, expecting: expecting, length: length, acceptsRanges: true)
        if let known = expecting.known {
            guard found.isSameRepresentation(as: known, trusting: expecting.trust) else {
                found.number = known.number + 1
                return .changed(found, covers(run, expecting.window, length: found.length) ? run : nil)
            }
            found = known.continued(by: found, head, expecting)
        }
        guard covers(run, expecting.window, length: found.length) else {
            return garbled("\(text) in answer to another range", asRange: true)
        }
        return .window(run, found)
    }

    /// Whether `run` is what `window` asks for in an asset of that length; shorter only where the asset's end cuts it.
    private static func covers(_ run: ByteRange, _ window: UpstreamRequest.Window, length: Int64?) -> Bool {
        if let length, run.upperBound > length { return false }
        switch window {
        case .whole: return false
        case .closed(let asked):
            guard run.lowerBound == asked.lowerBound else { return false }
            if run.upperBound == asked.upperBound { return true }
            // Without a length, what is short of the window may be all there is yet.
            return run.upperBound < asked.upperBound && (length == nil || run.upperBound == length)
        case .from(let first):
            // A server may send less than the whole rest (RFC 9110 §15.3.7).
            return run.lowerBound == first
        case .suffix(let count):
            return run.upperBound == length && run.length == min(count, run.upperBound)
        }
    }

    private static func unchangedAnswer(_ head: UpstreamHead, _ expecting: WindowExpectation) -> HeadJudgement {
        guard let known = expecting.known else { return garbled("a 304 to a request without a condition") }
        guard confirms(Validators.of(head.headers, now: expecting.now), known.validators) else {
            var unknown = Generation(receivedAt: expecting.now)
            unknown.number = known.number + 1
            return .changed(unknown, nil)
        }
        return .unchanged(known.confirmed(by: head, expecting: expecting))
    }

    /// Whether a 304 that says these validators is about what is known (RFC 9111 §4.3.4). Where it is not, nothing is known
    /// any more, and the upstream must be asked without a condition.
    private static func confirms(_ said: Validators, _ known: Validators) -> Bool {
        if let tag = said.entityTag, let knownTag = known.entityTag { return tag.matchesWeakly(knownTag) }
        guard said.lastModifiedIsStrong, let knownDate = known.lastModified else { return true }
        return said.lastModified == knownDate
    }

    /// A response that is neither stored nor cut into ranges: another success, a redirection without a target, a body in a
    /// coding that was not asked for. It is the answer to the request all the same.
    private static func passedOn(_ head: UpstreamHead, _ expecting: WindowExpectation) -> HeadJudgement {
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
            found.headers.append("Content-Encoding", coding)
        }
        guard let known = expecting.known else { return .whole(found) }
        found.number = known.number + 1
        return .changed(found, 0..<(length ?? .max))
    }

    /// The first content coding that is not identity, the only one that is accepted (RFC 9110 §12.5.3).
    private static func contentCoding(_ headers: HeaderList) -> String? {
        let codings = headers.values("Content-Encoding").flatMap { FieldText.members(of: $0) }
        return codings.first { FieldText.lowered($0) != "identity" }.map { String($0) }
    }

    /// No transfer coding is accepted but chunked (RFC 9112 §7.4).
    private static func transferCodingRefusal(_ headers: HeaderList) -> HeadJudgement? {
        let transfer = headers.values("Transfer-Encoding").flatMap { FieldText.members(of: $0) }
            .map { FieldText.lowered($0) }.filter { $0 != "identity" }
        guard transfer.isEmpty || transfer == ["chunked"] else {
            return garbled("a transfer coding that was not asked for")
        }
        return nil
    }

    private static let badLength = HeadJudgement.refused(
        CacheError(.upstreamProtocol, "The upstream sent a Content-Length that contradicts itself or is no number."))

    /// A range that begins at the first byte, and a suffix, can only be refused by an empty asset (RFC 9110 §14.1.2).
    private static func unsatisfiedAnswer(_ head: UpstreamHead, _ expecting: WindowExpectation) -> HeadJudgement {
        let length = unsatisfiedLength(head.headers)
        let isContradiction =
            switch expecting.window {
            case .whole: false
            case .closed(let run): length.map { $0 > run.lowerBound } ?? (run.lowerBound == 0)
            case .from(let first): length.map { $0 > first } ?? (first == 0)
            case .suffix: length != nil && length != 0
            }
        return isContradiction
            ? garbled("a 416 to a range that it could have answered", asRange: true) : .unsatisfiable(length: length)
    }

    private static func unsatisfiedLength(_ headers: HeaderList) -> Int64? {
        guard case .unsatisfied(let length)? = headers["Content-Range"].flatMap(ContentRange.parse) else { return nil }
        return length
    }

    /// What `Accept-Ranges` claims.
    private static func rangeHint(_ headers: HeaderList) -> Bool? {
        let units = headers.values("Accept-Ranges").flatMap { FieldText.members(of: $0) }.map { FieldText.lowered($0) }
        if units.contains("bytes") { return true }
        return units.contains("none") ? false : nil
    }

    private static func garbled(_ what: String, asRange: Bool = false) -> HeadJudgement {
        .refused(CacheError(.upstreamUnusable(asRange: asRange), "The upstream sent \(what)."))
    }
}

extension CacheError.Code {
    /// Whether the upstream may answer the same request without `Range`, which it may ignore (RFC 9110 §14.2): the status
    /// may be about the form of the request, and not the resource.
    package var refusesRange: Bool {
        switch self {
        case .upstreamUnusable(let asRange): asRange
        case .upstreamRefused(let status, _): [400, 403, 406, 416, 501].contains(status)
        default: false
        }
    }
}
