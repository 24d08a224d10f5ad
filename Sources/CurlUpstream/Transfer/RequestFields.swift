import CacheCore

/// Header lines of one upstream request, validated against header injection.
enum RequestFields {
    /// Fields that this client or libcurl sets itself; configured ones are ignored.
    private static let reserved = [
        "Range", "Accept-Encoding", "Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding",
        "Content-Length", "Expect", "TE", "Trailer", "Upgrade",
    ]

    /// The header fields of one hop. The origin's own fields are included only if `isOwnHost`. Throws
    /// `.malformedRequest` if the window is invalid.
    static func fields(of request: UpstreamRequest, isOwnHost: Bool) throws(CacheError) -> HeaderList {
        let own = isOwnHost ? request.originHeaders : HeaderList()
        var fields = request.headers.fields.filter { $0.name != "" && own[$0.name] == nil }
        // The Host field of the first host is wrong for another host.
        if !isOwnHost { fields.removeAll { HeaderList.same($0.name, "Host") } }
        fields += own.fields
        var list = HeaderList(fields.filter { field in !reserved.contains { HeaderList.same($0, field.name) } })
        list.append("Accept-Encoding", "identity")
        if let range = try range(request.window) { list.append("Range", range) }
        return list
    }

    /// The header lines for libcurl. Throws `.malformedRequest` if a name is not a token or a value contains a control
    /// character (RFC 9110 §5.5).
    static func lines(of fields: HeaderList) throws(CacheError) -> [String] {
        var lines: [String] = []
        for field in fields.fields {
            try check(field)
            lines.append(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
        }
        return lines
    }

    /// The value of the Range field (RFC 9110 §14.2); nil without one.
    private static func range(_ window: UpstreamRequest.Window) throws(CacheError) -> String? {
        switch window {
        case .whole: return nil
        case .closed(let range):
            guard range.lowerBound >= 0, !range.isEmpty else {
                throw CacheError(.malformedRequest, "The requested range is empty or begins before byte 0.")
            }
            return range.fieldValue
        case .from(let first):
            guard first >= 0 else { throw CacheError(.malformedRequest, "The requested range begins before byte 0.") }
            return "bytes=\(first)-"
        case .suffix(let length):
            guard length > 0 else { throw CacheError(.malformedRequest, "The requested suffix range is empty.") }
            return "bytes=-\(length)"
        }
    }

    private static func check(_ field: HeaderList.Field) throws(CacheError) {
        guard !field.name.isEmpty, field.name.utf8.allSatisfy(isToken) else {
            throw CacheError(.malformedRequest, "The name of an upstream header field is not a token.")
        }
        guard field.value.utf8.allSatisfy({ $0 >= 32 && $0 != 127 || $0 == 9 }) else {
            throw CacheError(.malformedRequest, "The header field \(field.name) contains a control character.")
        }
    }

    /// Whether the byte may occur in a token (RFC 9110 §5.6.2).
    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 48...57, 65...90, 97...122: true
        case 33, 35...39, 42, 43, 45, 46, 94...96, 124, 126: true
        default: false
        }
    }
}
