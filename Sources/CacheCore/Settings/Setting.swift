/// The declaration of one setting of `Root`: its key, type and meaning. The tables `settings` of the types with
/// settings contain all declarations; configurations, JSON documents, the store and the documentation are derived from them.
package struct Setting<Root>: Sendable {
    /// The dotted name in configurations, relative to the position of `Root`.
    package let key: String
    /// The effect, as a phrase in Markdown.
    package let meaning: String
    /// Whether configurations contain a list.
    package var isList = false
    /// Whether the value is masked in all outputs.
    package var isSecret = false
    /// Whether a reload of the configuration applies a changed value; otherwise only the next start does.
    package private(set) var isReloadable = true
    /// Copies the value from one root to another; nil for settings with forms of their own in configurations.
    package private(set) var copy: (@Sendable (Root, inout Root) -> Void)?
    /// Sets the value to a written one.
    package let parse: @Sendable (SettingText, inout Root) throws(SettingFault) -> Void
    /// The value as written; nil: there is none.
    package let write: @Sendable (Root) -> SettingText?
    /// The setting in JSON documents; nil: only configurations contain it.
    package var member: SettingMember<Root>?

    /// A setting with forms of its own in configurations.
    package init(
        _ key: String, _ meaning: String, isList: Bool = false, isSecret: Bool = false,
        parse: @escaping @Sendable (SettingText, inout Root) throws(SettingFault) -> Void,
        write: @escaping @Sendable (Root) -> SettingText?, member: SettingMember<Root>? = nil
    ) {
        self.key = key
        self.meaning = meaning
        self.isList = isList
        self.isSecret = isSecret
        self.parse = parse
        self.write = write
        self.member = member
    }

    /// A setting that always has a value.
    package init<Value>(
        _ key: String, _ property: SettingPath<Root, Value>, _ codec: SettingCodec<Value>,
        _ meaning: String
    ) {
        self.init(
            key, meaning,
            parse: { text, root throws(SettingFault) in root[keyPath: property] = try codec.value(of: text.scalar) },
            write: { root in codec.write(root[keyPath: property]).map(SettingText.scalar) },
            member: SettingMember(key + codec.unit, property, codec))
        copy = { $1[keyPath: property] = $0[keyPath: property] }
    }

    /// A setting with the additional value `none`.
    package init<Value>(
        _ key: String, orNone property: SettingPath<Root, Value?>, _ codec: SettingCodec<Value>,
        _ meaning: String
    ) {
        self.init(key, property, codec.orNone, meaning)
    }

    /// A setting that can be absent.
    package init<Value>(
        _ key: String, optional property: SettingPath<Root, Value?>, _ codec: SettingCodec<Value>,
        _ meaning: String
    ) {
        let codec = codec.orNone
        self.init(
            key, meaning,
            parse: { text, root throws(SettingFault) in root[keyPath: property] = try codec.value(of: text.scalar) },
            write: { root in root[keyPath: property].flatMap { codec.write($0).map(SettingText.scalar) } },
            member: SettingMember(key + codec.unit, property, codec))
        copy = { $1[keyPath: property] = $0[keyPath: property] }
    }

    /// A list of at most `limit` values.
    package init<Value>(
        _ key: String, list property: SettingPath<Root, [Value]>, upTo limit: Int = .max,
        _ codec: SettingCodec<Value>, _ meaning: String
    ) {
        self.init(
            key, meaning, isList: true,
            parse: { text, root throws(SettingFault) in
                guard text.list.count <= limit else { throw SettingFault("has more than \(limit) items") }
                var values: [Value] = []
                for item in text.list { values.append(try codec.value(of: item)) }
                root[keyPath: property] = values
            },
            write: { root in .list(root[keyPath: property].compactMap(codec.write)) },
            member: SettingMember(key, property, codec.list(upTo: limit)))
        copy = { $1[keyPath: property] = $0[keyPath: property] }
    }

    /// The same setting of `Whole`, which contains `Root` as its `property`, below `group`.
    package func moved<Whole>(to group: String, _ property: SettingPath<Whole, Root>) -> Setting<Whole> {
        var moved = Setting<Whole>(
            "\(group).\(key)", meaning, isList: isList, isSecret: isSecret,
            parse: { text, whole throws(SettingFault) in try parse(text, &whole[keyPath: property]) },
            write: { whole in write(whole[keyPath: property]) },
            member: member?.moved(to: group, property))
        moved.isReloadable = isReloadable
        if let copy { moved.copy = { copy($0[keyPath: property], &$1[keyPath: property]) } }
        return moved
    }

    /// The same setting, which only a start applies.
    package func fixed() -> Setting {
        var fixed = self
        fixed.isReloadable = false
        return fixed
    }
}

/// The property of a setting.
package typealias SettingPath<Root, Value> = any WritableKeyPath<Root, Value> & Sendable

/// A setting's value as written in a configuration.
package enum SettingText: Hashable, Sendable {
    case scalar(String)
    case list([String])

    /// The text; empty for a list.
    package var scalar: String { if case .scalar(let text) = self { text } else { "" } }
    /// The items; none for a single text.
    package var list: [String] { if case .list(let texts) = self { texts } else { [] } }
}
