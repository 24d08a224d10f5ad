import CacheCore
import CacheEngine
import CacheTestKit
import Foundation
import Testing

@testable import LarderServer

@Suite struct WebhookSettingsTests {
    private static let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Settings with the webhook `ops`; `others`: more settings of it.
    private func settings(
        _ url: String = "https://ops.example/hook?sig=s3cret", secrets: String = secret, _ others: (String, String)...
    ) throws -> LarderSettings {
        let file = directory.path("secrets")
        try secrets.write(toFile: file, atomically: true, encoding: .utf8)
        let flags = [("url", url), ("secretFile", file)] + others
        return try LarderSettings(flags: flags.map { ("webhooks.ops.\($0.0)", $0.1) })
    }

    @Test("A webhook has the settings of the configuration, and all kinds without a list")
    func settingsAreRead() throws {
        let other = "whsec_" + String(repeating: "B", count: 44)
        let ops = try settings(
            secrets: "\(Self.secret)\n\n \(other)\n", ("events", "disk.full,job.ended"), ("timeout", "3s"),
            ("tls.caFile", "ca.pem"), ("allowPrivateAddresses", "yes")
        ).cache.webhooks
        #expect(ops.map(\.name) == ["ops"] && ops[0].kinds == [.diskFull, .jobEnded] && ops[0].keys.count == 2)
        #expect(ops[0].timeout == .seconds(3) && ops[0].tls.caFile == "ca.pem" && ops[0].allowsPrivateAddresses)
        #expect(try settings().cache.webhooks[0].kinds == Set(WebhookKind.allCases))
    }

    @Test("Printed webhooks parse to the same settings, without secrets of URL and file")
    func secretsAreNotPrinted() throws {
        let settings = try settings()
        #expect(settings.rendered.contains("https://ops.example/hook?•••"))
        #expect(!settings.rendered.contains("s3cret") && !settings.rendered.contains("Mf"))
        let plain = try self.settings("https://ops.example/hook", ("events", "disk.full"), ("timeout", "3s"))
        #expect(try LarderSettings(file: ConfigurationFile(text: plain.rendered, name: "printed")) == plain)
        var dumped = ""
        dump(settings.webhooks[0].secrets, to: &dumped)
        #expect(!dumped.contains("Mf"))
    }

    @Test(
        "A bad webhook is refused with its setting",
        arguments: [
            ("http://127.0.0.1/", "has the loopback address 127.0.0.1; set webhooks.ops.allowPrivateAddresses to true"),
            ("http://10.0.0.1:81/", "has the private address 10.0.0.1"),
            ("https://[fd00::1]/", "has the private address fd00::1"),
            ("http://a.localhost/", "has the loopback address a.localhost"),
            ("http://0x7f000001/", "has the loopback address 127.0.0.1"),
            ("http://169.254.169.254/", "which no webhook may have"),
            ("http://u:p@ops.example/", "must have no user name, password and fragment"),
            ("ftp://ops.example/", "is not an http or https URL"), ("https:///", "cannot be used"),
        ])
    func badAddressesAreRefused(url: String, text: String) throws {
        let error = #expect(throws: SettingsError.self) { try settings(url) }
        #expect(error?.key == "webhooks.ops.url" && error?.problem.contains(text) == true, "\(error?.problem ?? "")")
    }

    @Test("Metadata services stay refused where private addresses are allowed")
    func metadataServicesStayRefused() throws {
        _ = try settings("http://127.0.0.1/", ("allowPrivateAddresses", "true"))
        #expect(throws: SettingsError.self) {
            try settings("http://169.254.169.254/", ("allowPrivateAddresses", "true"))
        }
    }

    @Test(
        "Bad files of secrets, names and kinds are refused with their setting",
        arguments: [
            ("ops", "secretFile", "/nowhere", "webhooks.ops.secretFile: \"/nowhere\" cannot be read"),
            ("ops", "events", "job.started", "webhooks.ops.events: \"job.started\" is not one of"),
            ("ops", "timeout", "2h", "webhooks.ops.timeout: \"2h\" is not a duration up to 1m"),
            ("ops", "uri", "x", "webhooks.ops.uri: is not a known setting (did you mean webhooks.ops.url?)"),
            ("Ops", "url", "https://a.example", "webhooks.Ops: is not a valid name of a webhook"),
            ("ops", "url", "https://a.example", "webhooks.ops.secretFile: is required"),
        ])
    func badSettingsAreRefused(name: String, key: String, text: String, message: String) throws {
        let error = #expect(throws: SettingsError.self) {
            try LarderSettings(flags: [("webhooks.\(name).\(key)", text)])
        }
        #expect(error?.description.hasPrefix(message) == true, "\(error?.description ?? "")")
        for secrets in ["", "secret", "whsec_abc", String(repeating: Self.secret + "\n", count: 11)] {
            #expect(throws: SettingsError.self) { try settings(secrets: secrets) }
        }
    }

    @Test("Changed webhooks are named, and no change needs a restart")
    func changesAreNamed() throws {
        let former = try settings()
        let other = try settings("https://other.example/", secrets: "whsec_" + String(repeating: "B", count: 44))
        #expect(other.changedKeys(since: former) == ["webhooks.ops.url"])
        let rotated = try settings(secrets: "whsec_" + String(repeating: "B", count: 44))
        #expect(rotated.changedKeys(since: former) == ["webhooks.ops"])
        #expect(rotated.needingRestart(from: former) == [] && rotated.keepingFixed(of: former) == rotated)
        #expect(LarderSettings().changedKeys(since: former) == ["webhooks.ops"])
        #expect(SettingsInput().tokenFiles(of: former) == [directory.path("secrets")])
    }
}
