import Foundation

/// The environment variables of the client.
struct ClientEnvironment {
    /// A problem with the token; its description is a sentence.
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    /// The variables of this process.
    static let process = ClientEnvironment(ProcessInfo.processInfo.environment)

    private let variables: [String: String]

    /// Empty variables count as absent.
    init(_ variables: [String: String]) { self.variables = variables.filter { !$0.value.isEmpty } }

    /// The URL of the service (`LARDER_URL`).
    var url: String? { variables["LARDER_URL"] }

    /// The name of the context (`LARDER_CONTEXT`).
    var context: String? { variables["LARDER_CONTEXT"] }

    /// The file of contexts, below the directory of the XDG Base Directory Specification; nil: the user has no home.
    var contextsFile: String? {
        let configured = variables["XDG_CONFIG_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        return (configured ?? variables["HOME"].map { $0 + "/.config" }).map { $0 + "/larder/contexts.json" }
    }

    /// The type of the terminal (`TERM`).
    var terminal: String? { variables["TERM"] }

    /// The token in `LARDER_TOKEN`, or in the file that `LARDER_TOKEN_FILE` names; nil: none.
    func token() throws(Fault) -> MaskedSecret? {
        let (given, path) = (variables["LARDER_TOKEN"], variables["LARDER_TOKEN_FILE"])
        guard given == nil || path == nil else {
            throw Fault(description: "LARDER_TOKEN and LARDER_TOKEN_FILE are both set; remove one of them.")
        }
        return try Self.token(given, file: path, of: "LARDER_TOKEN_FILE")
    }

    /// The token in the file, else `given`; nil: none. White space around it is removed. `source`: for messages.
    static func token(_ given: String?, file: String?, of source: String) throws(Fault) -> MaskedSecret? {
        var text = given
        if let file {
            do { text = try String(contentsOfFile: file, encoding: .utf8) } catch {
                throw Fault(description: "The file \"\(file)\" of \(source) cannot be read.")
            }
        }
        guard let token = text?.trimmingCharacters(in: .whitespacesAndNewlines) else { return nil }
        guard !token.isEmpty, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw Fault(description: "The token is empty, or contains blanks or other characters than ASCII.")
        }
        return MaskedSecret(token)
    }
}
