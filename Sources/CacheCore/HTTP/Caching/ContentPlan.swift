/// A request for content, as far as its answer depends on it.
package struct ContentRequest: Hashable, Sendable {
    /// HEAD instead of GET.
    package var isHead: Bool
    package var headers: HeaderList
    /// Which caches the request has been through (RFC 8586); handed on with what is fetched for it.
    package var cdnLoop: String?

    package init(isHead: Bool = false, headers: HeaderList = [:], cdnLoop: String? = nil) {
        self.isHead = isHead
        self.headers = headers
        self.cdnLoop = cdnLoop
    }
}

/// The answer to a request for content, complete but for the bytes: RFC 9110 §13 and §14 in one place.
package struct ContentPlan: Hashable, Sendable {
    /// A stretch of the body.
    package enum Segment: Hashable, Sendable {
        /// Bytes of the asset; up to `Int64.max` where its end is not known.
        case bytes(ByteRange)
        /// What stands between them.
        case text([UInt8])

        /// Nil for text.
        package var range: ByteRange? { if case .bytes(let range) = self { range } else { nil } }
    }

    /// 200, 206, 304, 412, 416, or that of a response that is passed on as it came.
    package var status: Int
    /// All fields but `Age` and those of the service; `Via` and `Cache-Status` as the upstream gave them; `Content-Length`
    /// where it is known.
    /// Those of 412 and 416 leave the body's type and length to whoever writes the problem.
    package var headers: HeaderList
    /// In order; empty for HEAD, 304, 412, 416 and an empty asset.
    package var body: [Segment]
    /// What the body's segments amount to, or would for a GET; nil: not known, send it chunked.
    package var contentLength: Int64?

    /// The runs of the asset that must be on disk before the answer ends, in the order sent.
    package var neededRanges: [ByteRange] {
        body.compactMap { segment in
            if case .bytes(let run) = segment { run } else { nil }
        }
    }

    /// How many bytes `neededRanges` have together.
    package var neededBytes: Int64 { neededRanges.byteCount }

    /// Plans the answer from the generation's description. `boundary` is asked for multipart answers only; `isFirst`:
    /// the response is requested from the upstream for this answer.
    ///
    /// While the length is not known every range is answered by the whole (§14.2 lets a server ignore `Range`), unless
    /// `unknownLength` says that a range with both its ends is answered as such.
    package static func make(
        _ request: ContentRequest, generation: Generation, now: Timestamp, isFirst: Bool = false,
        unknownLength: OriginSettings.UnknownLength = .whole, boundary: @autoclosure () -> String
    ) -> ContentPlan {
        var generation = generation
        for field in isFirst ? generation.firstHeaders.fields : [] {
            generation.headers.append(field.name, field.value)
        }
        if generation.headers[StoredHeaders.ownField] != nil { generation.headers.remove(StoredHeaders.ownField) }
        if let status = generation.passedStatus { return passed(generation, status, isHead: request.isHead) }
        switch ConditionalRequest.evaluate(request.headers, validators: generation.validators, now: now) {
        case .failed: return ContentPlan(status: 412, headers: [:], body: [], contentLength: 0)
        case .notModified: return notModified(generation)
        case .proceedWithoutRanges: return whole(generation, isHead: request.isHead)
        case .proceed: break
        }
        guard !request.isHead else { return whole(generation, isHead: true) }  // §14.2: Range is defined for GET alone
        let range = RangeHeader.parse(request.headers.combined("Range"))
        guard let length = generation.length else {
            guard unknownLength == .partial, case .ranges(let specs) = range, specs.count == 1,
                case .closed(let first, let last) = specs[0], last < Int64.max
            else { return whole(generation, isHead: false) }
            return partial(generation, first..<last + 1, of: nil)
        }
        switch range.resolve(length: length) {
        case .whole: return whole(generation, isHead: false)
        case .unsatisfiable: return unsatisfiable(length)
        case .runs(let runs):
            guard runs.count > 1 else { return partial(generation, runs[0], of: length) }
            return multipart(generation, runs, of: length, boundary: boundary())
        }
    }

    /// One run of bytes, for an answer whose head is known already.
    package static func bytes(_ run: ByteRange) -> ContentPlan {
        ContentPlan(status: 206, headers: [:], body: [.bytes(run)], contentLength: run.length)
    }

    private static func whole(_ generation: Generation, isHead: Bool) -> ContentPlan {
        var headers = representation(generation)
        if let type = generation.contentType { headers.append("Content-Type", type) }
        if let length = generation.length { headers.append("Content-Length", String(length)) }
        let body = wholeBody(generation, isHead: isHead)
        return ContentPlan(status: 200, headers: headers, body: body, contentLength: generation.length)
    }

    /// A response that is passed on as it came.
    private static func passed(_ generation: Generation, _ status: Int, isHead: Bool) -> ContentPlan {
        var headers = validators(generation)
        for field in generation.headers.fields { headers.append(field.name, field.value) }
        if let type = generation.contentType, generation.contentTypeFrom == .header {
            headers.append("Content-Type", type)
        }
        if let length = generation.length, status != 204 { headers.append("Content-Length", String(length)) }
        let body = wholeBody(generation, isHead: isHead)
        return ContentPlan(status: status, headers: headers, body: body, contentLength: generation.length)
    }

    private static func wholeBody(_ generation: Generation, isHead: Bool) -> [Segment] {
        let run = 0..<max(0, generation.length ?? Int64.max)
        return isHead || run.isEmpty ? [] : [.bytes(run)]
    }

    private static func partial(_ generation: Generation, _ run: ByteRange, of length: Int64?) -> ContentPlan {
        var headers = representation(generation)
        if let type = generation.contentType { headers.append("Content-Type", type) }
        headers.append("Content-Range", ContentRange.run(run, of: length).description)
        headers.append("Content-Length", String(run.length))
        return ContentPlan(status: 206, headers: headers, body: [.bytes(run)], contentLength: run.length)
    }

    private static func multipart(
        _ generation: Generation, _ runs: [ByteRange], of length: Int64, boundary: String
    ) -> ContentPlan {
        var body: [Segment] = []
        var total: UInt64 = 0  // the runs lie in the asset without overlap: their sum is an Int64, glue is small
        for (index, run) in runs.enumerated() {
            let opening = Multipart.opening(
                of: run, length: length, contentType: generation.contentType, boundary: boundary, isFirst: index == 0)
            body += [.text(opening), .bytes(run)]
            total += UInt64(opening.count) + UInt64(run.length)
        }
        let closing = Multipart.closing(boundary: boundary)
        body.append(.text(closing))
        guard let contentLength = Int64(exactly: total + UInt64(closing.count)) else {
            return whole(generation, isHead: false)
        }
        var headers = representation(generation)
        headers.append("Content-Type", "multipart/byteranges; boundary=\(boundary)")
        headers.append("Content-Length", String(contentLength))
        return ContentPlan(status: 206, headers: headers, body: body, contentLength: contentLength)
    }

    /// §15.4.5: what a 200 would say for caches, and nothing of the content.
    private static func notModified(_ generation: Generation) -> ContentPlan {
        var headers = validators(generation)
        for field in generation.headers.fields where keptBy304.contains(where: { HeaderList.same($0, field.name) }) {
            headers.append(field.name, field.value)
        }
        return ContentPlan(status: 304, headers: headers, body: [], contentLength: 0)
    }

    /// §15.5.17.
    private static func unsatisfiable(_ length: Int64) -> ContentPlan {
        let headers: HeaderList = [
            "Accept-Ranges": "bytes", "Content-Range": ContentRange.unsatisfied(of: length).description,
        ]
        return ContentPlan(status: 416, headers: headers, body: [], contentLength: 0)
    }

    private static let keptBy304 = [
        "Cache-Control", "Cache-Status", "Content-Location", "Date", "Expires", "Vary", "Via",
    ]

    private static func validators(_ generation: Generation) -> HeaderList {
        var headers: HeaderList = [:]
        if let tag = generation.validators.entityTag { headers.append("ETag", tag.description) }
        if let modified = generation.validators.lastModified { headers.append("Last-Modified", modified) }
        return headers
    }

    /// What 200 and 206 have in common.
    private static func representation(_ generation: Generation) -> HeaderList {
        var headers = validators(generation)
        if generation.length != nil { headers.append("Accept-Ranges", "bytes") }
        for field in generation.headers.fields { headers.append(field.name, field.value) }
        return headers
    }
}
