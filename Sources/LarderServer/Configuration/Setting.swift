import CacheCore

/// Definition of one setting of `Root`: name, meaning, parser, validation and output.
///
/// The tables in `Setting+Larder.swift`, `Setting+Origin.swift`, `Setting+Fills.swift` and `Setting+Quota.swift` list
/// all settings.
struct Setting<Root> {
    /// Dotted name, relative to the position of `Root` in the configuration.
    let key: String
    /// The effect, as a phrase.
    let meaning: String
    /// Whether the value is a list.
    let isList: Bool
    /// Reads the value from the lookup and stores it in the root.
    let read: (SettingsLookup, SettingsPath, inout Root) throws(SettingsError) -> Void
    /// The effective value as text; nil: there is none to print.
    let written: (Root) -> SettingsText?

    /// A setting that always has a value.
    init<Value>(
        _ key: String, _ property: WritableKeyPath<Root, Value>, _ form: SettingCodec<Value>, _ meaning: String
    ) {
        self.key = key
        self.meaning = meaning
        isList = false
        read = { lookup, path, root throws(SettingsError) in
            root[keyPath: property] = try lookup.value(path, as: form, or: root[keyPath: property])
        }
        written = { root in .scalar(form.write(root[keyPath: property])) }
    }

    /// A setting with the additional value `none`.
    init<Value>(
        _ key: String, orNone property: WritableKeyPath<Root, Value?>, _ form: SettingCodec<Value>, _ meaning: String
    ) {
        self.init(key, property, form.orNone, meaning)
    }

    /// A setting that can be absent.
    init<Value>(
        _ key: String, optional property: WritableKeyPath<Root, Value?>, _ form: SettingCodec<Value>, _ meaning: String
    ) {
        self.key = key
        self.meaning = meaning
        isList = false
        read = { lookup, path, root throws(SettingsError) in
            guard lookup.text(path) != nil else { return }
            root[keyPath: property] = try lookup.value(path, as: form.orNone, or: nil)
        }
        written = { root in root[keyPath: property].map { .scalar(form.write($0)) } }
    }

    /// A list of values.
    init<Value>(
        _ key: String, list property: WritableKeyPath<Root, [Value]>, _ form: SettingCodec<Value>, _ meaning: String
    ) {
        self.key = key
        self.meaning = meaning
        isList = true
        read = { lookup, path, root throws(SettingsError) in
            root[keyPath: property] = try lookup.values(path, as: form, or: root[keyPath: property])
        }
        written = { root in .list(root[keyPath: property].map(form.write)) }
    }

    /// A credential: read unchanged, printed as `•••`.
    init(_ key: String, secret property: WritableKeyPath<Root, MaskedSecret?>, _ meaning: String) {
        self.key = key
        self.meaning = meaning
        isList = false
        read = { lookup, path, root throws(SettingsError) in
            guard let text = lookup.text(path, isSecret: true) else { return }
            guard !text.isEmpty else { throw SettingsError(path.dotted, "is empty") }
            root[keyPath: property] = MaskedSecret(text)
        }
        written = { root in root[keyPath: property].map { .scalar($0.description) } }
    }

    /// A setting with a reader and an output of its own.
    init(
        _ key: String, isList: Bool = false, _ meaning: String,
        read: @escaping (SettingsLookup, SettingsPath, inout Root) throws(SettingsError) -> Void,
        written: @escaping (Root) -> SettingsText?
    ) {
        self.key = key
        self.meaning = meaning
        self.isList = isList
        self.read = read
        self.written = written
    }
}

/// The text of a setting's value in the output of `larder config`.
enum SettingsText: Hashable, Sendable {
    case scalar(String)
    case list([String])
}
