/// The parts of a content request that determine its response.
package struct ContentRequest: Hashable, Sendable {
    /// HEAD; false: GET.
    package var isHead: Bool
    package var headers: HeaderList
    /// The `CDN-Loop` field of the request (RFC 8586): the caches that it passed. It is forwarded with upstream
    /// requests.
    package var cdnLoop: String?
    /// `Authorization` and `Cookie`, for origins that forward them; no other part of the response depends on them.
    package var credentials: HeaderList

    package init(
        isHead: Bool = false, headers: HeaderList = [:], cdnLoop: String? = nil, credentials: HeaderList = [:]
    ) {
        self.isHead = isHead
        self.headers = headers
        self.cdnLoop = cdnLoop
        self.credentials = credentials
    }
}

/// A complete response to a content request except for the bytes: status, header fields and body layout (RFC 9110 §13,
/// §14).
package struct ContentPlan: Hashable, Sendable {
    /// A part of the body.
    package enum Segment: Hashable, Sendable {
        /// Bytes of the asset; the end is `Int64.max` if its length is unknown.
        case bytes(ByteRange)
        /// Multipart text between the ranges.
        case text([UInt8])

        /// Nil for text.
        package var range: ByteRange? { if case .bytes(let range) = self { range } else { nil } }
    }

    /// 200, 203, 206, 304, 412 or 416, or the status of a response that is passed on unchanged.
    package var status: Int
    /// All header fields except `Age` and the service's own ones. `Via` and `Cache-Status` are those of the upstream.
    /// `Content-Length` is present if it is known.
    ///
    /// For 412 and 416, the writer of the problem document adds type and length of the body.
    package var headers: HeaderList
    /// The parts in order; empty for HEAD, 304, 412, 416 and an empty asset.
    package var body: [Segment]
    /// The length of the body, for HEAD that of the equivalent GET; nil: unknown, send it chunked.
    package var contentLength: Int64?

    /// The ranges of the asset in the body, in the order of sending. They must be on disk before the response ends.
    package var neededRanges: [ByteRange] {
        body.compactMap { segment in
            if case .bytes(let run) = segment { run } else { nil }
        }
    }

    /// The sum of the lengths of `neededRanges`.
    package var neededBytes: Int64 { neededRanges.byteCount }

    /// Plans the response for a generation. `boundary` is evaluated for multipart responses only. `isFirst`: the
    /// upstream is requested for this response, so fields that must not be stored are passed on.
    ///
    /// Without a known length every range is answered with the whole asset (§14.2 lets a server ignore `Range`). With
    /// `unknownLength == .partial`, a single range with both ends is answered as requested.
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

    /// A plan for the bytes of one range, for a response with a head that is known already.
    package static func bytes(_ run: ByteRange) -> ContentPlan {
        ContentPlan(status: 206, headers: [:], body: [.bytes(run)], contentLength: run.length)
    }

    /// 200 or 203 with the whole asset.
    private static func whole(_ generation: Generation, isHead: Bool) -> ContentPlan {
        var headers = representation(generation)
        if let type = generation.contentType { headers.append("Content-Type", type) }
        if let length = generation.length { headers.append("Content-Length", String(length)) }
        let body = wholeBody(generation, isHead: isHead)
        return ContentPlan(
            status: generation.status, headers: headers, body: body, contentLength: generation.length)
    }

    /// A response that is passed on with its own status and fields.
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

    /// The whole asset as a body; without parts for HEAD and for an empty asset.
    private static func wholeBody(_ generation: Generation, isHead: Bool) -> [Segment] {
        let run = 0..<max(0, generation.length ?? Int64.max)
        return isHead || run.isEmpty ? [] : [.bytes(run)]
    }

    /// 206 with one range.
    package static func partial(_ generation: Generation, _ run: ByteRange, of length: Int64?) -> ContentPlan {
        var headers = part(generation)
        if let type = generation.contentType { headers.append("Content-Type", type) }
        headers.append("Content-Range", ContentRange.run(run, of: length).description)
        headers.append("Content-Length", String(run.length))
        return ContentPlan(status: 206, headers: headers, body: [.bytes(run)], contentLength: run.length)
    }

    /// 206 with several ranges as `multipart/byteranges` (§14.6); the whole asset if the total length overflows
    /// `Int64`.
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
        var headers = part(generation)
        headers.append("Content-Type", "multipart/byteranges; boundary=\(boundary)")
        headers.append("Content-Length", String(contentLength))
        return ContentPlan(status: 206, headers: headers, body: body, contentLength: contentLength)
    }

    /// 304 with the fields that §15.4.5 requires for caches, and none that describe the content.
    private static func notModified(_ generation: Generation) -> ContentPlan {
        var headers = validators(generation)
        for field in generation.headers.fields
        where keptBy304.contains(where: { HeaderList.same($0, field.name) }) || CacheControl.isTargeted(field.name) {
            headers.append(field.name, field.value)
        }
        return ContentPlan(status: 304, headers: headers, body: [], contentLength: 0)
    }

    /// 416 with the length of the asset (§15.5.17).
    private static func unsatisfiable(_ length: Int64) -> ContentPlan {
        let headers: HeaderList = [
            "Accept-Ranges": "bytes", "Content-Range": ContentRange.unsatisfied(of: length).description,
        ]
        return ContentPlan(status: 416, headers: headers, body: [], contentLength: 0)
    }

    /// Stored fields that a 304 repeats, besides the validators (§15.4.5) and the fields for some caches only.
    private static let keptBy304 = [
        "Cache-Control", "Cache-Status", "Content-Location", "Date", "Expires", "Vary", "Via",
    ]

    /// `ETag` and `Last-Modified`, as far as the upstream sent them.
    private static func validators(_ generation: Generation) -> HeaderList {
        var headers: HeaderList = [:]
        if let tag = generation.validators.entityTag { headers.append("ETag", tag.description) }
        if let modified = generation.validators.lastModified { headers.append("Last-Modified", modified) }
        return headers
    }

    /// The fields of a 206. A checksum of the whole would be taken for that of the range.
    private static func part(_ generation: Generation) -> HeaderList {
        var headers = representation(generation)
        headers.removeAll(where: StoredHeaders.isChecksumOfContent)
        return headers
    }

    /// The fields that 200 and 206 share.
    private static func representation(_ generation: Generation) -> HeaderList {
        var headers = validators(generation)
        if generation.length != nil { headers.append("Accept-Ranges", "bytes") }
        for field in generation.headers.fields { headers.append(field.name, field.value) }
        return headers
    }
}

extension ContentPlan {
    /// This response as a fallback for another asset: type, length and body only, and `no-store`. It has no validators,
    /// so that no client or cache takes the bytes for those of the other asset. Nil unless it is a complete 200 without
    /// a content coding.
    package var standingIn: ContentPlan? {
        guard status == 200, headers["Content-Encoding"] == nil else { return nil }
        var plan = self
        plan.headers = ["Cache-Control": "no-store"]
        for name in ["Content-Type", "Content-Length"] {
            if let value = headers[name] { plan.headers.append(name, value) }
        }
        return plan
    }
}
