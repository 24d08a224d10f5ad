import CacheAPI
import CacheCore

/// The failure of a call, as a message for people with its remedy.
struct ClientError: Error, Hashable {
    enum Kind: Hashable {
        /// No response, or none to its end.
        case unreachable
        /// A problem document of the service.
        case problem(status: Int, code: String)
        /// A response that no Larder service sends.
        case foreign
        /// The user interrupted the command.
        case interrupted
    }

    var kind: Kind
    /// A sentence.
    var message: String
    /// A sentence in the imperative; nil: the message is sufficient.
    var remedy: String?

    init(_ kind: Kind, _ message: String, remedy: String? = nil) {
        self.kind = kind
        self.message = message
        self.remedy = remedy
    }

    /// The lines for standard error.
    var text: String {
        "larder: \(PrintableText.of(message))\n" + (remedy.map { "remedy: \(PrintableText.of($0))\n" } ?? "")
    }

    static let interrupted = ClientError(.interrupted, "The command was interrupted.")

    /// Whether the same call can succeed soon without any change.
    var isTemporary: Bool {
        switch kind {
        case .unreachable: true
        case .problem(let status, _): [429, 502, 503, 504].contains(status)
        case .foreign, .interrupted: false
        }
    }
}

/// Errors from responses of the service.
extension ClientError {
    /// The error of a response with an error status: of its problem document (RFC 9457), if it is one.
    init(status: Int, body: [UInt8], from url: String) {
        // A body that is not JSON is no problem document.
        guard let problem: ProblemDocument = try? JSONParser.parse(body).decode(isStrict: false) else {
            self.init(
                .foreign, "\(url) answered with status \(status) and without a problem document.",
                remedy: "Check --url or LARDER_URL: another server may listen there.")
            return
        }
        self.init(
            code: problem.code, status: status, problem.detail, field: problem.field.value,
            requestID: problem.requestId)
    }

    /// The error with a code of the API, and its remedy.
    init(code: String, status: Int, _ detail: String, field: String? = nil, requestID: String? = nil) {
        self.init(
            .problem(status: status, code: code), "\(detail) (code \(code)\(field.map { ", field \($0)" } ?? ""))",
            remedy: Self.remedy(for: code, requestID: requestID))
    }

    /// The remedy for an error code of the API; nil if the detail of the problem states it.
    private static func remedy(for code: String, requestID: String?) -> String? {
        switch code {
        case "unauthorized": "Set LARDER_TOKEN or LARDER_TOKEN_FILE to a token of the service."
        case "tokenScope": "Set LARDER_TOKEN or LARDER_TOKEN_FILE to a token with the permission."
        case "forbidden": "Set LARDER_TOKEN or LARDER_TOKEN_FILE to the admin token of the service."
        case "notFound": "Check the name; `larder jobs` and `larder assets` list the identifiers."
        case "conflict": "Wait until the state permits the call, then repeat the command."
        case "invalidField", "malformedRequest": "Correct the value, and repeat the command; --help lists the options."
        case "methodNotAllowed", "notImplemented": "Use a service and a client of the same version: `larder version`."
        case "payloadTooLarge": "Pass fewer values, or raise `limits.bodyBytes` of the service."
        case "uriTooLong": "Pass shorter values, or raise `limits.urlBytes` of the service."
        case "overloaded", "shuttingDown", "rateLimited": "Repeat the command in a few seconds."
        case "storageFull": "Free disk space, raise `capacityBytes`, or unpin assets."
        case "storageCorrupt": "Check the disk and the log of the service, then run `larder verify`."
        case "internal": requestID.map { "Search the log of the service for the request \($0)." }
        default: nil
        }
    }

    /// The error of a response that is not the expected document.
    static func malformed(from url: String) -> ClientError {
        ClientError(
            .foreign, "The response of \(url) is not a document of the Larder API.",
            remedy: "Check --url or LARDER_URL: another server may listen there.")
    }
}
