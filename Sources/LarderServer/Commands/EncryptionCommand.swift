import ArgumentParser
import CacheCore

/// `larder encryption`: master keys of a running service, and new keys.
struct EncryptionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "encryption", abstract: "Show and rotate the master keys of encrypted origins.",
        subcommands: [
            EncryptionStatusCommand.self, EncryptionRotateCommand.self, EncryptionNewKeyCommand.self,
        ])
}

/// `larder encryption status`: keys, their use, and the progress of a rotation.
struct EncryptionStatusCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show the master keys, their use, and the last rotation.")

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["GET /v1/encryption"] }

    func perform(_ client: ServiceClient) throws {
        let report = try client.document(ServiceRequest(.get, "/v1/encryption"))
        say(service.json ? report.text : Self.text(report.json))
    }

    /// A table of the keys, and a sentence for each origin with assets in the other form and for the rotation.
    static func text(_ report: JSON) -> String {
        var table = TextTable(.leading("key"), .trailing("files"), .leading("state"))
        for key in report.list("keys") {
            let isActive = key["active"] == .bool(true)
            let state = key["available"] == .bool(true) ? (isActive ? "active" : "") : "missing"
            table.add(key.text("keyId") ?? "", FigureText.count(key.integer("files") ?? 0), state)
        }
        var lines = report.list("keys").isEmpty ? ["There are no master keys."] : [table.text]
        for origin in report.list("origins") where origin.integer("assetsLeft") ?? 0 > 0 {
            let assets = FigureText.count(origin.integer("assetsLeft") ?? 0, "asset")
            let form = origin["encrypt"] == .bool(true) ? "plain text" : "encrypted"
            lines.append("\(origin.text("name") ?? ""): \(assets) stored \(form) will be fetched again.")
        }
        if let rotation = report["rotation"], rotation != .null {
            let (done, files) = (rotation.integer("filesDone") ?? 0, rotation.integer("files") ?? 0)
            let state = rotation.text("state") ?? ""
            var line = "Rotation to \(rotation.text("activeKey") ?? ""): \(state), \(done) of \(files) files"
            if let locked = rotation.integer("filesLocked"), locked > 0 { line += ", \(locked) without their key" }
            lines.append(line + (rotation.text("error").map { "; waiting: \($0)" } ?? "."))
        }
        return lines.joined(separator: "\n")
    }
}

/// `larder encryption rotate`: seals the keys of all files under the active master key, and waits until that is done.
struct EncryptionRotateCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate", abstract: "Seal the keys of all files under the active master key.",
        discussion: "Content is not touched. The rotation goes on in the service if this command is interrupted.")

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["GET /v1/encryption", "POST /v1/encryption/rotate"] }

    func perform(_ client: ServiceClient) throws {
        Interruption.catchSignals()
        var report = try client.document(ServiceRequest(.post, "/v1/encryption/rotate"))
        while report.json["rotation"]?.text("state") == "running" {
            try Interruption.pause(for: .milliseconds(250))
            report = try client.document(ServiceRequest(.get, "/v1/encryption"))
        }
        say(service.json ? report.text : EncryptionStatusCommand.text(report.json))
    }
}

/// `larder encryption new-key`: prints a new master key.
struct EncryptionNewKeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "new-key", abstract: "Print a new master key: 32 random bytes in Base64 (RFC 4648 §5).",
        discussion: """
            Keep a copy in a safe place: without it the content is lost. For example: \
            (umask 077; larder encryption new-key > /etc/larder/keys/first)
            """)

    func run() { print(TokenNewCommand.newSecret()) }
}
