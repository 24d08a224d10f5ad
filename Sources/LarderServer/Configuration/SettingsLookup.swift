import Configuration

/// Looks settings up by dotted name: flags over environment over file.
struct SettingsLookup {
    private let config: ConfigReader

    /// The first provider that knows a key wins.
    init(providers: [any ConfigProvider]) {
        config = ConfigReader(providers: providers)
    }

    /// The value as its owner wrote it; nil where nobody did.
    func text(_ path: SettingsPath, isSecret: Bool = false) -> String? {
        config.string(forKey: ConfigKey(path.components), isSecret: isSecret)
    }

    /// A list's members; nil where nobody wrote it. Flags and variables divide them by commas.
    func list(_ path: SettingsPath) -> [String]? {
        config.stringArray(forKey: ConfigKey(path.components))
    }

    /// The value in the form it must have; `fallback` where nobody wrote it.
    func value<Value>(
        _ path: SettingsPath, as form: SettingsForm<Value>, or fallback: Value
    ) throws(SettingsError) -> Value {
        guard let text = text(path) else { return fallback }
        guard let value = form.parse(text) else {
            throw SettingsError(path.dotted, form.refusal(of: text))
        }
        return value
    }

    /// Each member in the form it must have.
    func values<Value>(
        _ path: SettingsPath, as form: SettingsForm<Value>, or fallback: [Value]
    ) throws(SettingsError) -> [Value] {
        guard let texts = list(path) else { return fallback }
        var values: [Value] = []
        for text in texts {
            guard let value = form.parse(text) else {
                throw SettingsError(path.dotted, form.refusal(of: text))
            }
            values.append(value)
        }
        return values
    }
}
