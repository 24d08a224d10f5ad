import CacheCore

/// One tunable of `Root`: its name, its meaning, and how it is read, checked and written. The tables in
/// `Setting+Larder.swift` and `Setting+Origin.swift` are the only list of them.
struct Setting<Root> {
    /// Dotted, from `Root`'s own place in the configuration.
    let key: String
    /// What it does, in a phrase.
    let meaning: String
    let isList: Bool
    let read: (SettingsLookup, SettingsPath, inout Root) throws(SettingsError) -> Void
    /// The value in force; nil where there is none to write.
    let written: (Root) -> SettingsText?

    /// A setting that has a value, be it `none`.
    init<Value>(
        _ key: String, _ property: WritableKeyPath<Root, Value>, _ form: SettingsForm<Value>, _ meaning: String
    ) {
        self.key = key
        self.meaning = meaning
        isList = false
        read = { lookup, path, root throws(SettingsError) in
            root[keyPath: property] = try lookup.value(path, as: form, or: root[keyPath: property])
        }
        written = { root in .scalar(form.write(root[keyPath: property])) }
    }

    /// A setting that can be switched off with `none`.
    init<Value>(
        _ key: String, orNone property: WritableKeyPath<Root, Value?>, _ form: SettingsForm<Value>, _ meaning: String
    ) {
        self.init(key, property, form.orNone, meaning)
    }

    /// A setting that need not be there.
    init<Value>(
        _ key: String, optional property: WritableKeyPath<Root, Value?>, _ form: SettingsForm<Value>, _ meaning: String
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

    /// A list.
    init<Value>(
        _ key: String, list property: WritableKeyPath<Root, [Value]>, _ form: SettingsForm<Value>, _ meaning: String
    ) {
        self.key = key
        self.meaning = meaning
        isList = true
        read = { lookup, path, root throws(SettingsError) in
            root[keyPath: property] = try lookup.values(path, as: form, or: root[keyPath: property])
        }
        written = { root in .list(root[keyPath: property].map(form.write)) }
    }

    /// A credential: read as it stands, written as `•••`.
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

    /// A setting of a shape of its own.
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

/// A setting's value as `larder config` prints it.
enum SettingsText: Hashable, Sendable {
    case scalar(String)
    case list([String])
}
