import ArgumentParser
import CacheAPI
import CacheCore
import Foundation
import ReaderAccess

/// `larder token list`: lists the tokens of a running service, or shows one.
struct TokenListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the tokens of a running service, or show one.")

    @Argument(help: "Name of the token to show.")
    var id: String?

    @OptionGroup var options: ListOptions
    @OptionGroup var service: ServiceOptions

    var needs: [String] { [id == nil ? "GET /v1/tokens" : "GET /v1/tokens/{tokenId}"] }

    var named: NamedObject? { id.map { .token($0) } }

    func perform(_ client: ServiceClient) throws {
        if let id {
            let token: APIDocument<TokenDocument> = try client.document(ServiceRequest(.get, TokenReport.path(id)))
            return say(service.json ? token.text : TokenReport.text(token.value))
        }
        try list("/v1/tokens", options, client, as: TokenReport.output)
    }
}

/// `larder token create`: makes a token at a running service, and prints its secret.
struct TokenCreateCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Make a token at a running service and print it; nothing else keeps it.",
        discussion: "A token cannot make one with more rights than its own.")

    @Argument(help: "Name of the reader in logs and statistics.")
    var id: String

    @Option(name: .long, help: "Permissions: read, write, sign (signed URLs only) or admin.")
    var scope: AccessScope

    @OptionGroup var rights: TokenRights
    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["POST /v1/tokens"] }

    func perform(_ client: ServiceClient) throws {
        let body: JSON = ["id": .string(id), "scope": .string(scope.rawValue)]
        let token: APIDocument<TokenDocument> = try client.document(
            ServiceRequest(
                .post, "/v1/tokens", body: body.merged(with: try rights.members(at: SystemWallClock().now()))))
        say(service.json ? token.text : token.value.token.value ?? "")
    }
}

/// `larder token change`: changes the rights of a token of a running service.
struct TokenChangeCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "change", abstract: "Change the rights of a token; other rights and the secret stay.")

    @Argument(help: "Name of the token.")
    var id: String

    @Option(name: .long, help: "Permissions: read, write, sign (signed URLs only) or admin.")
    var scope: AccessScope?

    @OptionGroup var rights: TokenRights

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Limit to remove: origins, prefixes, expiresAt, maxBytesPerSecond, maxSignatureSeconds or sharedCache; repeatable.",
            valueName: "member"))
    var unset: [String] = []

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["PATCH /v1/tokens/{tokenId}"] }

    var named: NamedObject? { .token(id) }

    func perform(_ client: ServiceClient) throws {
        var patch = try rights.members(at: SystemWallClock().now())
        if let scope { patch.insert(.string(scope.rawValue), at: ["scope"]) }
        for name in unset { patch.insert(.null, at: [name]) }
        let token: APIDocument<TokenDocument> = try client.document(
            ServiceRequest(.patch, TokenReport.path(id), body: patch))
        say(service.json ? token.text : TokenReport.text(token.value))
    }
}

/// `larder token revoke`: deletes a token of a running service.
struct TokenRevokeCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "Revoke a token of a running service, at once.")

    @Argument(help: "Name of the token.")
    var id: String

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["DELETE /v1/tokens/{tokenId}"] }

    var named: NamedObject? { .token(id) }

    func perform(_ client: ServiceClient) throws {
        try client.send(ServiceRequest(.delete, TokenReport.path(id)))
        if !service.json { say("The token \(id) is revoked.") }
    }
}

/// The text of tokens.
private enum TokenReport {
    static func path(_ id: String) -> String { "/v1/tokens/" + PercentEncoding.encoded(id) }

    static let output = ListOutput<TokenDocument>(
        noun: "token",
        columns: [
            .leading("id"), .leading("scope"), .leading("state"), .leading("limits"), .leading("expires"),
            .leading("source"),
        ],
        name: \.id
    ) { token in
        let limits = (token.origins ?? []) + (token.prefixes ?? [])
        return [
            [
                token.id, token.scope, token.state,
                token.origins == nil && token.prefixes == nil ? "none" : limits.joined(separator: ", "),
                token.expiresAt.map(RFC3339.format) ?? "never", token.source,
            ]
        ]
    }

    static func text(_ token: TokenDocument) -> String {
        var table = TextTable()
        table.add("id", token.id)
        table.add("scope", token.scope)
        table.add("state", token.state)
        table.add("source", token.source)
        if let origins = token.origins { table.add("origins", origins.joined(separator: ", ")) }
        if let prefixes = token.prefixes { table.add("prefixes", prefixes.joined(separator: ", ")) }
        if !token.subjects.isEmpty { table.add("certificates", token.subjects.joined(separator: ", ")) }
        table.add("expires", token.expiresAt.map(RFC3339.format) ?? "never")
        if let rate = token.maxBytesPerSecond { table.add("bytes per second", "\(rate)") }
        if let seconds = token.maxSignatureSeconds { table.add("signed URLs", "at most \(seconds) s") }
        if token.sharedCache { table.add("shared cache", "yes") }
        if let at = token.createdAt {
            table.add("made", RFC3339.format(at) + (token.createdBy.map { " by \($0)" } ?? ""))
        }
        return table.text
    }
}
