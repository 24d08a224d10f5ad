import ArgumentParser
import CacheAPI

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
        let report: APIDocument<EncryptionDocument> = try client.document(ServiceRequest(.get, "/v1/encryption"))
        say(service.json ? report.text : Self.text(report.value))
    }

    /// A table of the keys, and a sentence for each origin with assets in the other form and for the rotation.
    static func text(_ report: EncryptionDocument) -> String {
        var table = TextTable(.leading("key"), .trailing("files"), .leading("state"))
        for key in report.keys {
            table.add(key.keyId, FigureText.count(key.files), key.available ? (key.active ? "active" : "") : "missing")
        }
        var lines = report.keys.isEmpty ? ["There are no master keys."] : [table.text]
        for origin in report.origins where origin.assetsLeft > 0 {
            let assets = FigureText.count(origin.assetsLeft, "asset")
            let form = origin.encrypt ? "plain text" : "encrypted"
            lines.append("\(origin.name): \(assets) stored \(form) will be fetched again.")
        }
        if let rotation = report.rotation {
            let (done, files, locked) = (rotation.filesDone, rotation.files, rotation.filesLocked)
            var line = "Rotation to \(rotation.activeKey): \(rotation.state), \(done) of \(files) files"
            if locked > 0 { line += ", \(locked) without their key" }
            lines.append(line + (rotation.error.map { "; waiting: \($0)" } ?? "."))
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
        var report: APIDocument<EncryptionDocument> = try client.document(
            ServiceRequest(.post, "/v1/encryption/rotate"))
        while report.value.rotation?.state == "running" {
            try Interruption.pause(for: .seconds(1))
            report = try client.document(ServiceRequest(.get, "/v1/encryption"))
        }
        say(service.json ? report.text : EncryptionStatusCommand.text(report.value))
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
