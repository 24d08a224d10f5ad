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

    /// The items of a list; nil if no provider has it. In flags and variables, commas separate the items.
    func list(_ path: SettingsPath) -> [String]? {
        config.stringArray(forKey: ConfigKey(path.components))
    }

    /// The parsed value; `fallback` if no provider has it. Throws if the text is invalid.
    func value<Value>(
        _ path: SettingsPath, as form: SettingCodec<Value>, or fallback: Value
    ) throws(SettingsError) -> Value {
        guard let text = text(path) else { return fallback }
        guard let value = form.parse(text) else {
            throw SettingsError(path.dotted, form.refusal(of: text))
        }
        return value
    }

    /// The parsed items; `fallback` if no provider has the list. Throws if an item is invalid.
    func values<Value>(
        _ path: SettingsPath, as form: SettingCodec<Value>, or fallback: [Value]
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
