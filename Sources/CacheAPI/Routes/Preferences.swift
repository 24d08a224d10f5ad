import CacheCore
import HTTPTypes

/// The preferences of a request (`Prefer`, RFC 7240). Unknown and invalid ones are ignored (§2).
struct Preferences {
    /// `respond-async`: the response need not wait for the end of the operation (§4.1).
    private(set) var respondsLater = false
    /// `wait`: the longest time until the response (§4.3), at most 60 s. The value may be quoted. Of several ones the
    /// first counts.
    private(set) var wait: Duration?

    init(_ request: Request) { self.init(request.headers[values: .prefer]) }

    /// Parses the values of the field. Parameters of preferences are ignored.
    init(_ values: [String]) {
        var waits: [Duration?] = []
        for preference in values.flatMap({ FieldText.members(of: $0) }) {
            let parts = preference.prefix { $0 != ";" }.split(separator: "=", maxSplits: 1).map(FieldText.trimmed)
            switch parts.first?.lowercased() {
            case "respond-async": respondsLater = true
            case "wait": waits.append(parts.count == 2 ? Self.seconds(parts[1]) : nil)
            default: break
            }
        }
        wait = waits.first ?? nil
    }

    private static func seconds(_ text: Substring) -> Duration? {
        let isQuoted = text.count > 1 && text.hasPrefix("\"") && text.hasSuffix("\"")
        let digits = isQuoted ? text.dropFirst().dropLast() : text
        guard !digits.isEmpty, digits.utf8.allSatisfy(FieldText.isDigit) else { return nil }
        return .seconds(min(60, Int64(digits) ?? 60))
    }
}
