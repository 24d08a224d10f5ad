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

    /// The type of the terminal (`TERM`).
    var terminal: String? { variables["TERM"] }

    /// The token in `LARDER_TOKEN`, or in the file that `LARDER_TOKEN_FILE` names; nil: none. White space around it is
    /// removed.
    func token() throws(Fault) -> MaskedSecret? {
        let (given, path) = (variables["LARDER_TOKEN"], variables["LARDER_TOKEN_FILE"])
        guard given == nil || path == nil else {
            throw Fault(description: "LARDER_TOKEN and LARDER_TOKEN_FILE are both set; remove one of them.")
        }
        var text = given
        if let path {
            do { text = try String(contentsOfFile: path, encoding: .utf8) } catch {
                throw Fault(description: "The file \"\(path)\" of LARDER_TOKEN_FILE cannot be read.")
            }
        }
        guard let token = text?.trimmingCharacters(in: .whitespacesAndNewlines) else { return nil }
        guard !token.isEmpty, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw Fault(description: "The token is empty, or contains blanks or other characters than ASCII.")
        }
        return MaskedSecret(token)
    }
}
