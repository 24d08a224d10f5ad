import CacheAPI
import CacheCore
import CacheEngine
import CurlUpstream
import Foundation

/// A webhook of the configuration.
struct WebhookEntry: Hashable, Sendable {
    /// The maximum number of webhooks, and of secrets of one.
    static let (most, mostSecrets) = (50, 10)

    let name: String
    var url = ""
    var secretFile: String?
    /// The secrets of the file.
    var secrets: [MaskedSecret] = []
    /// Empty: all kinds.
    var events: [WebhookKind] = []
    var allowsPrivateAddresses = false
    var timeout = Duration.seconds(10)
    /// PEM file with the authorities of the receiver's certificate; nil: those of the system.
    var caFile: String?

    init(name: String) { self.name = name }

    /// The path of a setting of this webhook.
    func key(_ member: String) -> String { "\(SettingsSchema.webhooks).\(name).\(member)" }

    /// Whether a name has 1 to 64 of the characters a–z, 0–9, `_` and `-`.
    static func isValid(name: String) -> Bool {
        (1...64).contains(name.utf8.count)
            && name.utf8.allSatisfy { (97...122).contains($0) || (48...57).contains($0) || $0 == 0x5F || $0 == 0x2D }
    }

    /// The webhook for the engine. Secrets that are no keys were refused before.
    var settings: WebhookSettings {
        WebhookSettings(
            name: name, url: url, kinds: events.isEmpty ? Set(WebhookKind.allCases) : Set(events),
            keys: secrets.compactMap { WebhookKey($0.exposed) }, allowsPrivateAddresses: allowsPrivateAddresses,
            timeout: timeout, tls: TLSSettings(caFile: caFile))
    }
}

extension WebhookEntry {
    /// All settings of a webhook.
    static let settings: [Setting<Self>] = [
        Setting(
            "url", \.url, .webhookURL,
            "`http` or `https` URL of the receiver, without user; a query is a secret and not shown"),
        Setting(
            "secretFile", optional: \.secretFile, .path,
            "required: file with 1 to 10 secrets, one per line: `whsec_` and the Base64 form of 24 to 64 bytes. Each request has a "
                + "signature for each of them; read again within 2 s after a change"),
        Setting(
            "events", list: \.events, .choice,
            "kinds of events: `job.ended`, `job.atRisk`, `circuit.opened`, `disk.full`, `credentials.expiring`; without "
                + "it all"),
        Setting(
            "allowPrivateAddresses", \.allowsPrivateAddresses, .flag,
            "permit receivers with private and loopback addresses"),
        Setting(
            "timeout", \.timeout, .duration("a duration up to 1m", upTo: .seconds(60), example: "10s"),
            "time limit of one request, up to `1m`"),
        Setting(
            "tls.caFile", optional: \.caFile, .path,
            "PEM certificates of the authorities of the receiver, in place of those of the system"),
    ]
}

extension SettingCodec<String> {
    /// The URL of a receiver; its query is masked when it is written. Its other parts are checked with the other settings.
    fileprivate static var webhookURL: SettingCodec {
        SettingCodec(
            "an http or https URL", example: "https://ops.example/hooks/larder",
            parse: { $0.hasPrefix("http://") || $0.hasPrefix("https://") ? $0 : nil },
            write: { url in
                let shown = url.prefix { $0 != "?" }
                return shown.endIndex == url.endIndex ? url : shown + "?" + MaskedSecret.mask
            })
    }
}

// MARK: Reading

extension LarderSettings {
    /// The webhooks that flags and the file name, sorted by name. Variables alone create none.
    static func webhooks(
        namedBy paths: [SettingsPath], in lookup: SettingsLookup
    ) throws(SettingsError) -> [WebhookEntry] {
        let names = paths.map(\.components).filter { $0.first == SettingsSchema.webhooks && $0.count > 1 }.map { $0[1] }
        var webhooks: [WebhookEntry] = []
        for name in Set(names).sorted() {
            var webhook = WebhookEntry(name: name)
            try lookup.read(WebhookEntry.settings, below: [SettingsSchema.webhooks, name], into: &webhook)
            try webhook.readSecrets()
            webhooks.append(webhook)
        }
        guard webhooks.count <= WebhookEntry.most else {
            throw SettingsError(SettingsSchema.webhooks, "has more than \(WebhookEntry.most) webhooks; remove some")
        }
        return webhooks
    }

    /// Throws if a webhook has no usable URL.
    func checkWebhooks() throws(SettingsError) {
        for webhook in webhooks { try webhook.checkURL() }
    }
}

extension WebhookEntry {
    /// Reads the secrets of the file.
    fileprivate mutating func readSecrets() throws(SettingsError) {
        let key = key("secretFile")
        guard let secretFile else { throw SettingsError(key, "is required; name a file with a whsec_… secret") }
        guard let text = try? String(contentsOfFile: secretFile, encoding: .utf8) else {
            throw SettingsError(key, "\"\(secretFile)\" cannot be read")
        }
        let lines = text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.isEmpty }
        guard (1...Self.mostSecrets).contains(lines.count), lines.allSatisfy({ WebhookKey($0) != nil }) else {
            throw SettingsError(
                key,
                "\"\(secretFile)\" must have 1 to \(Self.mostSecrets) secrets, one per line: whsec_ and the Base64 form of "
                    + "24 to 64 bytes")
        }
        secrets = lines.map { MaskedSecret($0) }
    }

    /// Throws if the URL is missing or cannot be requested, or if its host is an address that is not permitted.
    fileprivate func checkURL() throws(SettingsError) {
        guard !url.isEmpty else { throw SettingsError(key("url"), "is required") }
        let authority = url.drop { $0 != ":" }.dropFirst(3).prefix { !"/?#".contains($0) }
        guard !authority.contains("@"), !url.contains("#") else {
            throw SettingsError(key("url"), "must have no user name, password and fragment; remove them")
        }
        let parsed: UpstreamURL
        do throws(CacheError) { parsed = try CurlWorkerPool.parsed(url: url) } catch {
            throw SettingsError(key("url"), "cannot be used: \(error.message)")
        }
        let isLocalName = parsed.host == "localhost" || parsed.host.hasSuffix(".localhost")
        let numeric = NetworkAddress(parsed.host).flatMap { AddressGuard.refusal(of: $0.bytes) }
        guard let kind = numeric ?? (isLocalName ? "loopback" : nil) else { return }
        if AddressGuard.isNeverAllowed(kind) {
            throw SettingsError(key("url"), "has the \(kind) address \(parsed.host), which no webhook may have")
        }
        guard !allowsPrivateAddresses else { return }
        throw SettingsError(
            key("url"),
            "has the \(kind) address \(parsed.host); set \(key("allowPrivateAddresses")) to true if the receiver is there"
        )
    }
}
