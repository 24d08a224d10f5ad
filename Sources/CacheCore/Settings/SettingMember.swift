/// The member of a JSON document that contains a setting of `Root`.
package struct SettingMember<Root>: Sendable {
    /// The dotted path of the member, for example `timeouts.connectSeconds`.
    package let path: String
    /// The keywords of its JSON Schema.
    package let schema: JSON
    package let isNullable: Bool
    /// Sets the value to that of a document. The second parameter is the path for errors.
    let decode: @Sendable (JSON, String, inout Root) throws(CacheError) -> Void
    let encode: @Sendable (Root) -> JSON
    /// The reason why the value is not permitted; nil if it is.
    fileprivate(set) var fault: @Sendable (Root) -> SettingFault?

    private init(
        path: String, schema: JSON, isNullable: Bool,
        decode: @escaping @Sendable (JSON, String, inout Root) throws(CacheError) -> Void,
        encode: @escaping @Sendable (Root) -> JSON,
        fault: @escaping @Sendable (Root) -> SettingFault?
    ) {
        self.path = path
        self.schema = schema
        self.isNullable = isNullable
        self.decode = decode
        self.encode = encode
        self.fault = fault
    }

    init<Value>(_ path: String, _ property: SettingPath<Root, Value>, _ codec: SettingCodec<Value>) {
        self.init(
            path: path, schema: codec.schema, isNullable: codec.isNullable,
            decode: { json, path, root throws(CacheError) in root[keyPath: property] = try codec.decode(json, path) },
            encode: { root in codec.encode(root[keyPath: property]) },
            fault: { root in codec.fault(root[keyPath: property]) })
    }

    func moved<Whole>(to group: String, _ property: SettingPath<Whole, Root>) -> SettingMember<Whole> {
        SettingMember<Whole>(
            path: "\(group).\(path)", schema: schema, isNullable: isNullable,
            decode: { json, path, whole throws(CacheError) in try decode(json, path, &whole[keyPath: property]) },
            encode: { whole in encode(whole[keyPath: property]) }, fault: { whole in fault(whole[keyPath: property]) })
    }
}

extension Array {
    /// The JSON document of all settings, in their order. `others`: members that precede them.
    package func json<Root>(of root: Root, after others: JSON = [:]) -> JSON where Element == Setting<Root> {
        reduce(into: others) { document, setting in
            guard let member = setting.member else { return }
            document.insert(member.encode(root), at: member.path.split(separator: ".").map(String.init))
        }
    }

    /// Sets the settings that occur in a JSON document. Does not check whether the values are permitted.
    ///
    /// - Parameters:
    ///   - path: The path of `json` for errors; empty for the whole document.
    ///   - others: The members of `json` that are no settings.
    package func read<Root>(
        _ json: JSON, into root: inout Root, at path: String = "", besides others: Set<String> = []
    ) throws(CacheError) where Element == Setting<Root> {
        let members = compactMap(\.member)
        try Self.read(json, below: "", members, into: &root, at: path.isEmpty ? "" : path + ".", besides: others)
    }

    private static func read<Root>(
        _ json: JSON, below group: String, _ known: [SettingMember<Root>], into root: inout Root, at path: String,
        besides others: Set<String>
    ) throws(CacheError) {
        guard case .object(let members) = json else {
            throw .invalid(path.isEmpty ? "(body)" : String(path.dropLast()), "A JSON object is expected here.")
        }
        for member in members where !others.contains(member.key) {
            let (name, place) = (group + member.key, path + member.key)
            let setting = known.first { $0.path == name }
            guard !member.key.contains("."), setting != nil || known.contains(where: { $0.path.hasPrefix(name + ".") })
            else {
                throw .invalid(place, "The field is unknown; check its name.")
            }
            guard member.value != .null || setting?.isNullable == true else {
                throw .invalid(place, "null is not allowed here; leave the field out.")
            }
            if let setting {
                try setting.decode(member.value, place, &root)
            } else {
                try read(member.value, below: name + ".", known, into: &root, at: place + ".", besides: [])
            }
        }
    }

    /// The first setting whose value is not permitted, with the reason; nil if all are.
    package func firstFault<Root>(of root: Root) -> (setting: Setting<Root>, fault: SettingFault)?
    where Element == Setting<Root> {
        lazy.compactMap { setting in setting.member?.fault(root).map { (setting, $0) } }.first
    }

    /// Throws `.invalidField` with the path of the first value that is not permitted. `path`: as in ``read``.
    package func validate<Root>(_ root: Root, at path: String = "") throws(CacheError) where Element == Setting<Root> {
        guard let (setting, fault) = firstFault(of: root), let member = setting.member else { return }
        throw fault.error(at: path.isEmpty ? member.path : "\(path).\(member.path)")
    }
}

extension Setting {
    /// The same setting with a rule that depends on other settings: the reason why the value is not permitted.
    func checked(_ rule: @escaping @Sendable (Root) -> SettingFault?) -> Setting {
        var checked = self
        checked.member?.fault = { [member] root in member?.fault(root) ?? rule(root) }
        return checked
    }
}

extension SettingCodec {
    /// A list of at most `limit` values in JSON documents.
    func list(upTo limit: Int) -> SettingCodec<[Value]> {
        let excess = SettingFault("At most \(limit) entries are allowed.")
        var list = SettingCodec<[Value]>(
            decode: { json, path throws(CacheError) in
                guard case .array(let items) = json else { throw SettingFault(expecting: "an array").error(at: path) }
                guard items.count <= limit else { throw excess.error(at: path) }
                var values: [Value] = []
                for (index, item) in items.enumerated() { values.append(try decode(item, "\(path)[\(index)]")) }
                return values
            },
            encode: { .array($0.map(encode)) },
            fault: { values in
                guard values.count <= limit else { return excess }
                return values.indices.lazy.compactMap { index in
                    fault(values[index]).map { SettingFault(at: "[\(index)]\($0.path)", $0.message) }
                }.first
            })
        list.schema = limit == .max ? ["type": "array"] : ["type": "array", "maxItems": .integer(Int64(limit))]
        return list
    }
}
