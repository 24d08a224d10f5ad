package import CacheCore

/// The expiry that a signed URL states in its own query.
package enum SignedLinkExpiry {
    /// The time from which the URL is refused. Nil if it is no signed URL of a known form: AWS and Google Cloud
    /// signature version 4, signature version 2 of both, CloudFront with a canned policy, shared access signature of
    /// Azure.
    package static func expiry(of url: String) -> Timestamp? {
        let base = url.prefix { $0 != "#" }
        guard let mark = base.firstIndex(of: "?") else { return nil }
        let parameters = QueryParameters(base[base.index(after: mark)...])
        for prefix in ["x-amz", "x-goog"] {
            if let date = parameters["\(prefix)-date"].flatMap(basicTime),
                let lifetime = parameters["\(prefix)-expires"].flatMap(seconds)
            {
                return date + .seconds(lifetime)
            }
        }
        if let end = parameters["expires"].flatMap(seconds),
            parameters["signature"] != nil || parameters["key-pair-id"] != nil
        {
            return Timestamp(seconds: end)
        }
        guard parameters["sig"] != nil else { return nil }
        return parameters["se"].flatMap(azureTime)
    }

    /// Parses a time of a shared access signature: a date, optionally with hours and minutes, optionally with seconds.
    static func azureTime(_ text: String) -> Timestamp? {
        switch text.utf8.count {
        case 10: RFC3339.parse(text + "T00:00:00Z")
        // `2026-01-31T12:00Z`
        case 17 where text.hasSuffix("Z"): RFC3339.parse(text.dropLast() + ":00Z")
        default: RFC3339.parse(text)
        }
    }

    /// Parses the basic format of ISO 8601: `20130524T000000Z`.
    private static func basicTime(_ text: String) -> Timestamp? {
        let bytes = Array(text.utf8)
        guard bytes.count == 16 else { return nil }
        func part(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }
        let date = [part(0..<4), part(4..<6), part(6..<8)].joined(separator: "-")
        return RFC3339.parse(date + part(8..<11) + ":" + part(11..<13) + ":" + part(13..<16))
    }

    /// Parses a number of seconds below 2^40; it cannot overflow a timestamp.
    private static func seconds(_ text: String) -> Int64? {
        FieldText.byteCount(text.utf8).flatMap { $0 < 1 << 40 ? $0 : nil }
    }
}
