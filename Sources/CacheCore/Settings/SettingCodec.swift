/// The type of a setting: the forms of its values in configurations and in JSON documents, and the permitted values.
package struct SettingCodec<Value>: Sendable {
    /// The form in configurations, with its article: "… is not a byte size".
    package var name: String
    /// A valid text; empty if `name` is sufficient.
    package var example = ""
    /// The form in JSON documents, with its article.
    package var documentName: String
    /// The unit at the end of the member's name in JSON documents, for example `Seconds`.
    package var unit = ""
    /// Whether JSON documents may contain null.
    package var isNullable = false
    /// The keywords of a JSON Schema that accepts the permitted values (JSON Schema 2020-12, Validation).
    package var schema: JSON = [:]
    /// Converts a text; nil if it has another form.
    package var parse: @Sendable (String) -> Value?
    /// Inverse of ``parse``; nil if another setting writes the value.
    package var write: @Sendable (Value) -> String?
    /// Converts the value at the given path of a JSON document. Throws `.invalidField`.
    package var decode: @Sendable (JSON, String) throws(CacheError) -> Value
    /// Inverse of ``decode``.
    package var encode: @Sendable (Value) -> JSON
    /// The reason why a value is not permitted; nil if it is.
    package var fault: @Sendable (Value) -> SettingFault?

    package init(
        _ name: String, example: String = "", documentName: String? = nil, schema: JSON = [:],
        parse: @escaping @Sendable (String) -> Value?, write: @escaping @Sendable (Value) -> String?,
        decode: @escaping @Sendable (JSON) -> Value?, encode: @escaping @Sendable (Value) -> JSON
    ) {
        let documentName = documentName ?? name
        self.name = name
        self.example = example
        self.documentName = documentName
        self.schema = schema
        self.parse = parse
        self.write = write
        self.decode = { json, path throws(CacheError) in
            guard let value = decode(json) else { throw SettingFault(expecting: documentName).error(at: path) }
            return value
        }
        self.encode = encode
        fault = { _ in nil }
    }

    /// A type of JSON documents; configurations have other settings for its parts.
    init(
        isNullable: Bool = false, decode: @escaping @Sendable (JSON, String) throws(CacheError) -> Value,
        encode: @escaping @Sendable (Value) -> JSON, fault: @escaping @Sendable (Value) -> SettingFault?
    ) {
        self.init("a group of settings", parse: { _ in nil }, write: { _ in nil }, decode: { _ in nil }, encode: encode)
        self.isNullable = isNullable
        self.decode = decode
        self.fault = fault
    }

    /// A value that JSON documents contain as a string, in the form of configurations.
    package init(
        _ name: String, example: String = "", schema: JSON = ["type": "string"],
        parse: @escaping @Sendable (String) -> Value?,
        write: @escaping @Sendable (Value) -> String
    ) {
        self.init(
            name, example: example, schema: schema, parse: parse, write: write,
            decode: { json in if case .string(let text) = json, !text.utf8.contains(0) { parse(text) } else { nil } },
            encode: { .string(write($0)) })
    }

    /// Converts a text to a permitted value.
    package func value(of text: String) throws(SettingFault) -> Value {
        guard let value = parse(text), fault(value) == nil else {
            throw SettingFault(
                "\"\(Self.withoutCredentials(text))\" is not \(name)" + (example.isEmpty ? "" : " (try \(example))"))
        }
        return value
    }

    /// A URL without the user and the query, which can be secrets; another text unchanged.
    private static func withoutCredentials(_ text: String) -> String {
        guard let scheme = text.firstRange(of: "://") else { return text }
        let authority = text[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" }
        let host = authority.lastIndex(of: "@").map { "…" + authority[$0...] } ?? String(authority)
        let rest = text[authority.endIndex...]
        let path = rest.prefix { $0 != "?" }
        return text[..<scheme.upperBound] + host + path + (path.endIndex == rest.endIndex ? "" : "?…")
    }

    /// The same type with other names, restricted to the values that `isPermitted` accepts.
    package func limited(
        _ name: String? = nil, documentName: String? = nil, example: String? = nil, schema: JSON = [:],
        where isPermitted: @escaping @Sendable (Value) -> Bool
    ) -> SettingCodec {
        var codec = self
        codec.name = name ?? self.name
        codec.documentName = documentName ?? name ?? self.documentName
        codec.example = example ?? self.example
        codec.schema = self.schema.merged(with: schema)
        let refusal = SettingFault(expecting: codec.documentName)
        codec.fault = { [fault] value in fault(value) ?? (isPermitted(value) ? nil : refusal) }
        return codec
    }

    /// The same type with the additional value nil: `none` in configurations, null in JSON documents.
    package var orNone: SettingCodec<Value?> { optional(none: "none") }

    /// The same type with the additional value nil. `none`: its form in configurations.
    package func optional(none: String) -> SettingCodec<Value?> {
        var codec = SettingCodec<Value?>(
            "\(name) or \(none)", example: example, documentName: documentName + ", or null",
            parse: { [parse] text in text == none ? .some(nil) : parse(text).map(Optional.some) },
            write: { [write] value in value.map(write) ?? none }, decode: { _ in nil },
            encode: { [encode] value in value.map(encode) ?? .null })
        codec.decode = { [decode] json, path throws(CacheError) in json == .null ? nil : try decode(json, path) }
        codec.fault = { [fault] value in value.flatMap(fault) }
        codec.unit = unit
        codec.isNullable = true
        codec.schema = schema
        return codec
    }
}

/// The reason why a setting is refused.
package struct SettingFault: Error, Hashable, Sendable {
    /// The path from the setting's member in JSON documents, for example `.ttlSeconds` or `[2]`; mostly empty.
    package var path = ""
    /// For configurations a predicate, such as `is empty`; for JSON documents a sentence.
    package var message: String

    package init(at path: String = "", _ message: String) {
        self.path = path
        self.message = message
    }

    /// The sentence for a value of another form. `form`: the expected form, with its article.
    init(expecting form: String) {
        self.init("\(form.prefix(1).uppercased() + form.dropFirst()) is expected here.")
    }

    /// The error for a JSON document with the setting at `path`.
    func error(at path: String) -> CacheError { CacheError(.invalidField(path + self.path), message) }
}
