import CacheCore

/// The complete plan of one response of the loopback upstream: head, body and faults.
struct LoopbackPlan {
    enum Content {
        case asset(LoopbackAsset, ByteRange)
        case bytes([UInt8])
        case hangUp
    }

    private(set) var status = 200
    private(set) var head: [UInt8] = []
    private(set) var content = Content.bytes([])
    /// The requested bytes; nil if they cannot be determined.
    private(set) var asked: ByteRange?
    private(set) var isChunked = false
    private(set) var closes = false
    var faults: [LoopbackFault] = []

    init(_ answer: LoopbackAnswer, to request: LoopbackRequest) {
        switch answer {
        case .asset(let asset): plan(asset, request)
        case .response(let status, let headers, let body): plan(status, headers, body, request)
        case .redirect(let target, let status): plan(status, ["Location": target], Array("moved".utf8), request)
        case .raw(let bytes):
            head = bytes
            closes = true
        case .hangUp: content = .hangUp
        }
    }

    /// The length of the body.
    var length: Int64 {
        switch content {
        case .asset(_, let range): range.length
        case .bytes(let bytes): Int64(bytes.count)
        case .hangUp: 0
        }
    }

    /// The bytes of the body in `range`, relative to its start.
    func bytes(_ range: ByteRange) -> [UInt8] {
        switch content {
        case .asset(let asset, let whole):
            asset.bytes(whole.lowerBound + range.lowerBound..<whole.lowerBound + range.upperBound)
        case .bytes(let bytes): Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
        case .hangUp: []
        }
    }

    /// The offset of a scripted end of the connection, and its kind.
    var end: (after: Int64, isReset: Bool)? {
        for fault in faults {
            switch fault {
            case .cut(let after): return (after, false)
            case .reset(let after): return (after, true)
            default: continue
            }
        }
        return nil
    }

    var stalls: [(after: Int64, latch: LoopbackLatch)] {
        faults.compactMap { if case .stall(let after, let latch) = $0 { (after, latch) } else { nil } }
            .sorted { $0.after < $1.after }
    }

    var bytesPerSecond: Int64? {
        faults.compactMap { if case .pace(let rate) = $0 { rate } else { nil } }.first
    }

    private mutating func plan(_ status: Int, _ headers: HeaderList, _ body: [UInt8], _ request: LoopbackRequest) {
        self.status = status
        var fields = headers
        if status != 304, status != 204 { fields.set("Content-Length", String(body.count)) }
        head = Self.head(status, fields)
        content = .bytes(request.method == "HEAD" || status == 304 || status == 204 ? [] : body)
    }

    private mutating func plan(_ asset: LoopbackAsset, _ request: LoopbackRequest) {
        faults = asset.faults
        var fields = asset.headers
        fields.set("Date", "Thu, 01 Jan 2026 00:00:00 GMT")
        if let etag = asset.etag { fields.set("ETag", etag) }
        if let date = asset.lastModified { fields.set("Last-Modified", date) }
        if let rules = asset.cacheControl { fields.set("Cache-Control", rules) }
        if asset.acceptsRanges { fields.set("Accept-Ranges", "bytes") }
        if Self.isUnchanged(asset, request) { return plan(304, fields, [], request) }
        if let type = asset.contentType { fields.set("Content-Type", type) }

        let whole: ByteRange = 0..<asset.size
        let wanted = request.method == "GET" ? Self.range(request.headers["Range"], size: asset.size) : .whole
        let served = Self.honoursRange(asset, request) ? wanted : .whole
        if request.method == "GET" { asked = wanted.bytes ?? whole }
        var body = whole
        switch served {
        case .whole: status = 200
        case .part(let range):
            status = 206
            body = range
            fields.set("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(asset.size)")
        case .unsatisfiable:
            fields.set("Content-Range", "bytes */\(asset.size)")
            return plan(416, fields, [], request)
        }
        switch asset.framing {
        case .length: fields.set("Content-Length", String(body.length))
        case .chunked: fields.set("Transfer-Encoding", "chunked")
        case .untilClose: fields.set("Connection", "close")
        }
        head = Self.head(status, fields)
        content = .asset(asset, request.method == "HEAD" ? body.lowerBound..<body.lowerBound : body)
        isChunked = asset.framing == .chunked && request.method != "HEAD"
        closes = asset.framing == .untilClose
    }

    /// The result of a `Range` field.
    private enum Wanted {
        case whole
        case part(ByteRange)
        case unsatisfiable

        var bytes: ByteRange? { if case .part(let range) = self { range } else { nil } }
    }

    /// Evaluates a single range (RFC 9110 §14.1.2). Range sets and other units count as no range.
    private static func range(_ field: String?, size: Int64) -> Wanted {
        guard let field, field.hasPrefix("bytes="), !field.contains(",") else { return .whole }
        let ends = field.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { return .whole }
        switch (Int64(ends[0]), Int64(ends[1])) {
        case (nil, nil): return .whole
        case (nil, .some(let suffix)): return suffix == 0 ? .unsatisfiable : .part(max(0, size - suffix)..<size)
        case (.some(let first), let last):
            let end = min(size, (last ?? size - 1) + 1)
            return first < end ? .part(first..<end) : .unsatisfiable
        }
    }

    private static func honoursRange(_ asset: LoopbackAsset, _ request: LoopbackRequest) -> Bool {
        guard asset.acceptsRanges else { return false }
        guard let condition = request.headers["If-Range"] else { return true }
        return condition.hasPrefix("W/") ? false : condition == asset.etag || condition == asset.lastModified
    }

    private static func isUnchanged(_ asset: LoopbackAsset, _ request: LoopbackRequest) -> Bool {
        if let tags = request.headers["If-None-Match"] {
            return tags == "*" || asset.etag.map { tags.contains($0.replacing("W/", with: "")) } ?? false
        }
        if let date = request.headers["If-Modified-Since"] { return date == asset.lastModified }
        return false
    }

    private static func head(_ status: Int, _ fields: HeaderList) -> [UInt8] {
        let lines = fields.fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        return Array("HTTP/1.1 \(status) \(status < 400 ? "Fine" : "Not so")\r\n\(lines)\r\n".utf8)
    }
}
