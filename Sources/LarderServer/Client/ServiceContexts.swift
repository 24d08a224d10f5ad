import CacheCore
import Foundation

/// The services that the user has named, in a file of the user's configuration.
struct ServiceContexts: Codable {
    /// A named service with its credentials.
    struct Context: Codable {
        let name: String
        var url: String
        /// The file of the token; nil: `token`, or none.
        private(set) var tokenFile: String?
        private(set) var token: String?
        var caFile: String?

        init(name: String, url: String) { (self.name, self.url) = (name, url) }

        /// The token, of the file if there is one. Throws `ClientEnvironment.Fault`.
        func secret() throws(ClientEnvironment.Fault) -> MaskedSecret? {
            try ClientEnvironment.token(token, file: tokenFile, of: "the context \(name)")
        }

        /// Replaces the token by one in the file of contexts.
        mutating func keep(_ secret: MaskedSecret) { (token, tokenFile) = (secret.exposed, nil) }

        /// Replaces the token by that of a file. Throws `ClientEnvironment.Fault` if the file has none.
        mutating func read(_ file: String) throws(ClientEnvironment.Fault) {
            (token, tokenFile) = (nil, file)
            _ = try secret()
        }

        /// The context without its token, for the user.
        func document(isCurrent: Bool) -> JSON {
            JSON(present: [
                "name": .string(name), "url": .string(url), "current": .bool(isCurrent),
                "tokenFile": tokenFile.map(JSON.string), "hasToken": .bool(token != nil || tokenFile != nil),
                "caFile": caFile.map(JSON.string),
            ])
        }
    }

    /// The name of the context without another choice; nil: none.
    var current: String?
    var contexts: [Context] = []

    subscript(name: String) -> Context? {
        get { contexts.first { $0.name == name } }
        set {
            contexts.removeAll { $0.name == name }
            if let newValue { contexts.append(newValue) }
            contexts.sort { $0.name < $1.name }
            if newValue == nil, current == name { current = nil }
        }
    }

    /// The context with this name. Throws `ClientEnvironment.Fault` with a similar name if there is none.
    func named(_ name: String) throws(ClientEnvironment.Fault) -> Context {
        if let context = self[name] { return context }
        let suggestion = UsageError.suggestion(for: name, among: contexts.map(\.name))
        throw ClientEnvironment.Fault(
            description: "There is no context named \(name). "
                + (suggestion ?? "`larder context set \(name) --url URL` makes one."))
    }
}

/// The file of contexts.
extension ServiceContexts {
    /// The contexts of the user; none without a file. Throws `ClientEnvironment.Fault` for a file that is invalid or that
    /// other users can read.
    init(of environment: ClientEnvironment) throws(ClientEnvironment.Fault) {
        self.init()
        guard let path = environment.contextsFile else { return }
        do throws(PrivateFile.Fault) {
            guard let bytes = try PrivateFile.read(path) else { return }
            // The parser's message could quote a token.
            guard let contexts: Self = try? JSONParser.parse(bytes).decode(isStrict: false) else {
                throw PrivateFile.Fault(description: "\"\(path)\" is not a file of contexts; correct or remove it.")
            }
            self = contexts
        } catch {
            throw ClientEnvironment.Fault(description: error.description)
        }
    }

    /// Replaces the file.
    func save(_ environment: ClientEnvironment) throws(ClientEnvironment.Fault) {
        guard let path = environment.contextsFile else {
            throw ClientEnvironment.Fault(description: "Contexts need HOME or XDG_CONFIG_HOME; set one of them.")
        }
        do throws(PrivateFile.Fault) { try PrivateFile.replace(path, with: jsonText + "\n") } catch {
            throw ClientEnvironment.Fault(description: error.description)
        }
    }
}
