import ArgumentParser
import CacheCore
import Foundation
import ReaderAccess
import WebTokens

/// `larder token`: makes tokens for the tokens file, and lists, makes, changes and revokes those of a running service.
struct TokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token", abstract: "Make, list, change and revoke tokens.",
        subcommands: [
            TokenNewCommand.self, TokenListCommand.self, TokenCreateCommand.self, TokenChangeCommand.self,
            TokenRevokeCommand.self,
        ])
}

/// The rights of a token, beside its scope.
struct TokenRights: ParsableArguments {
    @Option(name: .long, help: ArgumentHelp("Origin that the reader may access; repeatable.", valueName: "name"))
    var origin: [String] = []

    @Option(
        name: .long,
        help: ArgumentHelp("Beginning of the paths that the reader may access; repeatable.", valueName: "/o/…"))
    var prefix: [String] = []

    @Option(name: .long, help: ArgumentHelp("Validity from now on, such as 30d.", valueName: "duration"))
    var expires: String?

    @Option(name: .long, help: ArgumentHelp("Rate limit of the reader.", valueName: "bytes"))
    var maxBytesPerSecond: Int64?

    @Option(
        name: .long,
        help: ArgumentHelp("Longest validity of signed URLs that the reader makes, such as 12h.", valueName: "duration")
    )
    var maxSignature: String?

    @Flag(name: .long, help: "The reader is a shared cache that authorizes its own clients; it may reuse responses.")
    var sharedCache = false

    /// The members of an entry. Throws `ValidationError` for an invalid duration.
    func members(at now: Timestamp) throws -> JSON {
        let end = try expires.map { now + (try Self.duration($0, option: "--expires")) }
        let validity = try maxSignature.map { try Self.duration($0, option: "--max-signature") }
        return JSON(present: [
            "origins": origin.isEmpty ? nil : .array(origin.map(JSON.string)),
            "prefixes": prefix.isEmpty ? nil : .array(prefix.map(JSON.string)),
            "expiresAt": end.map { .string(RFC3339.format($0)) },
            "maxBytesPerSecond": maxBytesPerSecond.map(JSON.integer),
            "maxSignatureSeconds": validity.map { .integer(Int64($0.inSeconds)) },
            "sharedCache": sharedCache ? .bool(true) : nil,
        ])
    }

    /// The duration of an option, such as `30d`.
    static func duration(_ text: String, option: String) throws -> Duration {
        let codec = SettingCodec<Duration>.duration(example: "30d")
        guard let duration = codec.parse(text), duration >= .seconds(1), duration <= .seconds(315_360_000) else {
            throw ValidationError("\(option) must be a duration from 1s to 3650d, such as 30d.")
        }
        return duration
    }
}

/// `larder token new`: makes a random token and its entry in the tokens file.
///
/// The file contains the SHA-256 of the token only. Exit status 1 if the file cannot be read or written.
struct TokenNewCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "new", abstract: "Make a token and print it; nothing else keeps it.",
        discussion: """
            For a running service use `larder token create`. With --file the entry is added to the tokens file; a running \
            service reads it within two seconds. Without --file the second line of the output is the entry. With --subject the reader is a client certificate, and \
            there is no token.
            """)

    @Option(name: .long, help: "Name of the reader in logs and statistics.")
    var id: String

    @Option(name: .long, help: "Permissions: read, write, sign (signed URLs only) or admin.")
    var scope: AccessScope

    @OptionGroup var rights: TokenRights

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Name of a client certificate: CN=…, DNS:…, URI:… or EMAIL:…; repeatable.", valueName: "name"))
    var subject: [String] = []

    @Option(name: .long, help: ArgumentHelp("Tokens file to add the entry to.", valueName: "file"))
    var file: String?

    func run() throws {
        let token = Self.newSecret()
        do {
            let entry = try entry(token, at: SystemWallClock().now())
            if let file { try Self.add(entry, to: file) }
            if subject.isEmpty { print(token) }
            if file == nil { print(entry.text) }
        } catch let error as CacheError {
            throw ValidationError(error.message)
        } catch let error as FileFault {
            StandardError.write("larder: \(error.description)\n")
            throw ExitCode(1)
        }
    }

    /// 256 random bits of the kernel, as text.
    static func newSecret() -> String {
        var generator = SystemRandomNumberGenerator()
        return token(&generator)
    }

    /// A token with 256 random bits.
    static func token(_ generator: inout some RandomNumberGenerator) -> String {
        Base64URL.encode((0..<32).map { _ in UInt8.random(in: 0...UInt8.max, using: &generator) })
    }

    /// The entry of the tokens file. Throws `CacheError` for an invalid member, and `ValidationError` for an invalid
    /// duration.
    func entry(_ token: String, at now: Timestamp) throws -> JSON {
        let entry = JSON(present: [
            "id": .string(id), "scope": .string(scope.rawValue),
            "sha256": subject.isEmpty ? .string(TokenDigest(of: token).hexDigits) : nil,
            "subjects": subject.isEmpty ? nil : .array(subject.map(JSON.string)),
        ]).merged(with: try rights.members(at: now))
        _ = try TokensFile(["tokens": [entry]])
        return entry
    }

    /// An error of the tokens file; its description is a sentence.
    struct FileFault: Error {
        let description: String
    }

    /// Adds the entry to the file, or creates the file, readable by its owner only. The file is replaced at once, so
    /// that no reader sees a part of it.
    static func add(_ entry: JSON, to path: String) throws {
        let all = try entries(of: path) + [entry]
        _ = try TokensFile(["tokens": .array(all)])
        let lines = all.map { "  " + $0.text }.joined(separator: ",\n")
        let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        do throws(PrivateFile.Fault) {
            try PrivateFile.replace(target, with: "{\"tokens\":[\n\(lines)\n]}\n", mode: mode(of: target))
        } catch {
            throw FileFault(description: error.description)
        }
    }

    /// The permissions of the file; those of a new one are for its owner only.
    private static func mode(of path: String) -> Int {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path),  // none: the file is new
            let mode = attributes[.posixPermissions] as? Int
        else { return 0o600 }
        return mode
    }

    /// The entries of the file; none if it does not exist.
    private static func entries(of path: String) throws -> [JSON] {
        guard FileManager.default.fileExists(atPath: path) else { return [] }
        guard let bytes = FileManager.default.contents(atPath: path) else {
            throw FileFault(description: "\"\(path)\" cannot be read; check its permissions.")
        }
        do throws(CacheError) {
            _ = try TokensFile.parse(bytes)
            guard case .array(let entries)? = try JSONParser.parse(bytes)["tokens"] else { return [] }
            return entries
        } catch {
            throw FileFault(description: "\"\(path)\" is not a valid tokens file: \(error.message)")
        }
    }
}

extension AccessScope: ExpressibleByArgument {}
