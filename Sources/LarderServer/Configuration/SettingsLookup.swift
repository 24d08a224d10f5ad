import CacheCore
import Configuration

/// Reads raw values by path from several providers: flags, environment, file.
struct SettingsLookup {
    private let config: ConfigReader

    /// For each key, the first provider with a value has precedence.
    init(providers: [any ConfigProvider]) {
        config = ConfigReader(providers: providers)
    }

    /// The value as written; nil if no provider has it.
    func text(_ path: SettingsPath, isSecret: Bool = false) -> String? {
        config.string(forKey: ConfigKey(path.components), isSecret: isSecret)
    }

    /// Whether a provider has a value.
    func contains(_ path: SettingsPath, isList: Bool, isSecret: Bool) -> Bool {
        isList
            ? config.stringArray(forKey: ConfigKey(path.components), isSecret: isSecret) != nil
            : text(path, isSecret: isSecret) != nil
    }

    /// Reads the settings that a provider has. In flags and variables, commas separate the items of a list. Throws an
    /// error with the key of the first value that is not permitted.
    ///
    /// - Parameter group: The position of `root` in the configuration.
    func read<Root>(
        _ settings: [Setting<Root>], below group: [String] = [], into root: inout Root
    ) throws(SettingsError) {
        for setting in settings {
            let path = SettingsPath(group + setting.key.split(separator: ".").map(String.init))
            let written: SettingText? =
                setting.isList
                ? config.stringArray(forKey: ConfigKey(path.components)).map(SettingText.list)
                : text(path, isSecret: setting.isSecret).map(SettingText.scalar)
            guard let written else { continue }
            do { try setting.parse(written, &root) } catch { throw SettingsError(path.dotted, error.message) }
        }
        if let (setting, fault) = settings.firstFault(of: root) {
            throw SettingsError((group + [setting.key]).joined(separator: "."), fault.message)
        }
    }
}
