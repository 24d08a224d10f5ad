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
        /// A failure of this program, with a code of ``CacheError``.
        case local(code: String)
        /// The service had nothing to change.
        case unchanged
        /// The command line is invalid.
        case usage
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

    /// The object for standard error with `--json`. `code` is that of the service, or `unreachable`, `foreign`,
    /// `unchanged` or `usage`.
    var json: JSON {
        let (status, code): (Int?, String) =
            switch kind {
            case .problem(let status, let code): (status, code)
            case .unreachable: (nil, "unreachable")
            case .foreign: (nil, "foreign")
            case .interrupted: (nil, "interrupted")
            case .local(let code): (nil, code)
            case .unchanged: (nil, "unchanged")
            case .usage: (nil, "usage")
            }
        return [
            "error": JSON(present: [
                "code": .string(code), "status": status.map { .integer(Int64($0)) }, "message": .string(message),
                "remedy": remedy.map(JSON.string),
            ])
        ]
    }

    init(_ error: CacheError) { self.init(.local(code: error.code.name), error.sentence) }

    static let interrupted = ClientError(.interrupted, "The command was interrupted.")

    /// Whether the same call can succeed soon without any change.
    var isTemporary: Bool {
        switch kind {
        case .unreachable: true
        case .problem(let status, _): [429, 502, 503, 504].contains(status)
        case .foreign, .interrupted, .local, .unchanged, .usage: false
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
        let field = problem.field.value.map { ", field \($0)" } ?? ""
        self.init(
            .problem(status: status, code: problem.code), "\(problem.detail) (code \(problem.code)\(field))",
            remedy: Self.remedy(for: problem))
    }

    /// The remedy that the service states, with the means of this program.
    private static func remedy(for problem: ProblemDocument) -> String {
        switch problem.code {
        case "unauthorized", "tokenScope", "forbidden":
            problem.remedy + " This program sends the token in LARDER_TOKEN or LARDER_TOKEN_FILE."
        case "internal": problem.remedy + " The request is \(problem.requestId)."
        default: problem.remedy
        }
    }

    /// The error of a response that is not the expected document.
    static func malformed(from url: String) -> ClientError {
        ClientError(
            .foreign, "The response of \(url) is not a document of the Larder API.",
            remedy: "Check --url or LARDER_URL: another server may listen there.")
    }
}
