/// The error codes in the body of an upstream's error response: the JSON of Google APIs and AWS, or the XML of object
/// stores.
package struct ErrorDocument: Hashable, Sendable {
    /// A reason that determines whether the request is repeated.
    package enum Reason: Hashable, Sendable {
        /// The server limits the rate, or has waited for the request: it may succeed a moment later.
        ///
        /// Sources: AWS SDKs and Tools Reference Guide, "Retry behavior"; Google Drive API, "Resolve errors"
        /// (`userRateLimitExceeded`); google.rpc.Code (`RESOURCE_EXHAUSTED`).
        case transient
        /// The keys of the request have ended.
        case expiredToken
        /// The keys are valid, and have no permission. Without permission to list, Amazon S3 answers so for a key that
        /// does not exist.
        case accessDenied
    }

    /// The part of a body that is read.
    package static let maxBytes = 4 << 10

    /// The codes in lower case without `_`.
    package let codes: Set<String>

    /// Parses the beginning of a body. A JSON document must be complete; XML needs its element `Code` only.
    package init(_ body: some Collection<UInt8>) {
        let bytes = Array(body.prefix(Self.maxBytes))
        var codes: [String] = []
        switch bytes.first(where: { $0 > 0x20 }) {
        case UInt8(ascii: "{"):
            // A document that is no JSON has no code.
            guard let json = try? JSONParser.parse(bytes) else { break }
            codes = Self.codes(in: json) + (json["error"].map(Self.codes) ?? [])
        case UInt8(ascii: "<"):
            let text = String(decoding: bytes, as: UTF8.self)
            guard let start = text.firstRange(of: "<Code>"),
                let end = text[start.upperBound...].firstRange(of: "</Code>")
            else { break }
            codes = [String(text[start.upperBound..<end.lowerBound])]
        default: break
        }
        self.codes = Set(codes.map { FieldText.lowered($0).replacing("_", with: "") })
    }

    /// The codes of one object: its own, and the reasons of its lists.
    private static func codes(in object: JSON) -> [String] {
        let own = ["code", "status", "reason", "__type"].compactMap { object[$0]?.string }
        let lists = ["errors", "details"].flatMap { name -> [JSON] in
            if case .array(let items)? = object[name] { items } else { [] }
        }
        return own.map { String($0.split(separator: "#").last ?? "") } + lists.compactMap { $0["reason"]?.string }
    }

    /// The reason that the codes state; nil for all others.
    package var reason: Reason? {
        if codes.contains(where: { Self.transient.contains($0) || $0.hasSuffix("ratelimitexceeded") }) {
            return .transient
        }
        if !codes.isDisjoint(with: ["expiredtoken", "expiredtokenexception"]) { return .expiredToken }
        return codes.contains("accessdenied") ? .accessDenied : nil
    }

    private static let transient: Set<String> = [
        "bandwidthlimitexceeded", "limitexceededexception", "priorrequestnotcomplete", "requestlimitexceeded",
        "requestthrottled", "requestthrottledexception", "requesttimeout", "requesttimeoutexception",
        "resourceexhausted",
        "serverbusy", "slowdown", "throttledexception", "throttling", "throttlingexception", "toomanyrequests",
        "toomanyrequestsexception",
    ]
}
