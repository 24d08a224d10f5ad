@testable import CacheAPI
import CacheCore
import ReaderAccess

/// Access rules for tests.
enum TestAccess {
    /// Rules with a tokens file. Each token is its own identifier; `members` are its other members in JSON.
    static func rules(
        _ tokens: [(id: String, members: String)], signatures: ContentSignatures? = nil
    ) throws -> AccessRules {
        let directory = ReaderDirectory()
        directory.update(file: try file(tokens))
        return AccessRules(directory, signatures: signatures)
    }

    /// A tokens file.
    static func file(_ tokens: [(id: String, members: String)]) throws -> TokensFile {
        let entries = tokens.map { token in
            #"{"id":"\#(token.id)","sha256":"\#(TokenDigest(of: token.id).hexDigits)",\#(token.members)}"#
        }
        return try TokensFile.parse(Array(#"{"tokens":[\#(entries.joined(separator: ","))]}"#.utf8))
    }
}

extension AccessRules {
    /// Rules with tokens whose identifiers are the names of their scopes.
    init(tokens: [(token: String, scope: AccessScope)], allowUnauthenticated: Bool = false) {
        let directory = ReaderDirectory()
        let entries: [JSON] = tokens.map { token, scope in
            [
                "id": .string(scope.rawValue), "sha256": .string(TokenDigest(of: token).hexDigits),
                "scope": .string(scope.rawValue),
            ]
        }
        do {
            directory.update(file: try TokensFile(["tokens": .array(entries)]))
        } catch {
            preconditionFailure("Invalid tokens, such as two of one scope, are an error of the test: \(error)")
        }
        self.init(directory, allowUnauthenticated: allowUnauthenticated)
    }
}
