import CacheAPI
import CacheCore

/// One setting as written in configurations.
struct WrittenSetting: Hashable, Sendable {
    var path: SettingsPath
    /// Nil: there is none. Credentials are masked.
    var value: SettingText?
    var isList: Bool
}

extension LarderSettings {
    /// All settings in output order, with those of tags and origins. Credentials are masked.
    var written: [WrittenSetting] {
        var all = Self.written(LarderSettings.settings, of: self, below: [])
        for (tag, quota) in policy.tagQuotas.sorted(by: { $0.key < $1.key }) {
            all += Self.written(Quota.settings, of: quota, below: SettingsSchema.tagQuotas + [tag])
        }
        for origin in origins {
            let group = ["origins", origin.name]
            all += Self.written(OriginSettings.settings, of: origin.settings, below: group)
            all += origin.settings.headers.fields.map { field in
                WrittenSetting(
                    path: SettingsPath(group + ["headers", field.name]), value: .scalar(MaskedSecret.mask),
                    isList: false)
            }
        }
        for webhook in webhooks {
            all += Self.written(WebhookEntry.settings, of: webhook, below: [SettingsSchema.webhooks, webhook.name])
        }
        return all
    }

    private static func written<Root>(
        _ settings: [Setting<Root>], of root: Root, below group: [String]
    ) -> [WrittenSetting] {
        settings.map { setting in
            WrittenSetting(
                path: SettingsPath(group + setting.key.split(separator: ".").map(String.init)),
                value: setting.write(root), isList: setting.isList)
        }
    }
}

extension ReadSettings {
    /// The settings for `/v1/configuration`: all of the service, and those of tags and origins that are not defaults.
    var report: [ConfigurationReport.Setting] {
        settings.written.compactMap { written in
            let source = source(of: written.path)
            let components = written.path.components
            let isNamed =
                components.first == "origins" || components.first == SettingsSchema.webhooks
                || components.starts(with: SettingsSchema.tagQuotas)
            guard source != .default || !isNamed else { return nil }
            return ConfigurationReport.Setting(
                key: written.path.dotted, value: written.value, source: source.rawValue)
        }
    }
}
