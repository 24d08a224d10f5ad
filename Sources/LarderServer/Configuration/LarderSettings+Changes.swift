import CacheCore

/// Comparison of settings for reloads.
extension LarderSettings {
    /// These settings with the values of `running` for the settings that only a start applies.
    func keepingFixed(of running: LarderSettings) -> LarderSettings {
        var kept = self
        for setting in LarderSettings.settings where !setting.isReloadable { setting.copy?(running, &kept) }
        return kept
    }

    /// The keys of the settings that only a start applies and that differ from those of `running`.
    func needingRestart(from running: LarderSettings) -> [String] {
        LarderSettings.settings
            .filter { !$0.isReloadable && $0.write(self) != $0.write(running) }.map(\.key)
    }

    /// The keys of all settings that differ from `old`. An origin that only one of both has is one key,
    /// `origins.<name>`.
    func changedKeys(since old: LarderSettings) -> [String] {
        var keys = LarderSettings.settings.filter { $0.write(self) != $0.write(old) }.map(\.key)
        // Written values of credentials are equal masks.
        if access.token != old.access.token, !keys.contains("access.token") { keys.append("access.token") }
        if access.readToken != old.access.readToken, !keys.contains("access.readToken") {
            keys.append("access.readToken")
        }
        for tag in Set(policy.tagQuotas.keys).union(old.policy.tagQuotas.keys).sorted()
        where policy.tagQuotas[tag] != old.policy.tagQuotas[tag] {
            keys.append((SettingsSchema.tagQuotas + [tag]).joined(separator: "."))
        }
        let (before, after) = (Self.byName(old.origins), Self.byName(origins))
        for name in Set(before.keys).union(after.keys).sorted() {
            keys += Self.changedKeys(of: name, from: before[name], to: after[name])
        }
        return keys + changedWebhooks(since: old)
    }

    /// The keys of the webhooks that differ: their settings, or the webhook itself if it is new or gone, or has other
    /// secrets.
    private func changedWebhooks(since old: LarderSettings) -> [String] {
        let before = Dictionary(old.webhooks.map { ($0.name, $0) }) { first, _ in first }
        let after = Dictionary(webhooks.map { ($0.name, $0) }) { first, _ in first }
        return Set(before.keys).union(after.keys).sorted().flatMap { name -> [String] in
            guard before[name] != after[name] else { return [] }
            guard let old = before[name], let new = after[name] else { return ["\(SettingsSchema.webhooks).\(name)"] }
            let keys = WebhookEntry.settings.filter { $0.write(old) != $0.write(new) }.map { new.key($0.key) }
            return keys.isEmpty ? ["\(SettingsSchema.webhooks).\(name)"] : keys
        }
    }

    /// Whether a base URL or a mirror of an origin has a scheme, host or port that the origin did not have in `old`.
    func hasNewServer(since old: LarderSettings) -> Bool {
        let known = Self.byName(old.origins).mapValues { [$0.baseURL] + $0.mirrors }
        return origins.contains { origin in
            ([origin.settings.baseURL] + origin.settings.mirrors).contains { url in
                !(known[origin.name] ?? []).contains { BaseURL.isSameServer($0, url) }
            }
        }
    }

    private static func byName(_ origins: [Origin]) -> [String: OriginSettings] {
        Dictionary(origins.map { ($0.name, $0.settings) }) { first, _ in first }
    }

    /// The keys of one origin that differ; the origin's own if that is a credential, or if it is new or gone.
    private static func changedKeys(of name: String, from old: OriginSettings?, to new: OriginSettings?) -> [String] {
        guard old != new else { return [] }
        guard let old, let new else { return ["origins.\(name)"] }
        var keys = OriginSettings.settings.filter { $0.write(old) != $0.write(new) }.map(\.key)
        if old.headers != new.headers { keys.append("headers") }
        return keys.isEmpty ? ["origins.\(name)"] : keys.map { "origins.\(name).\($0)" }
    }
}
