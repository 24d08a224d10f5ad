package import CacheCore

/// Header fields with credentials, whose values are printed as `•••` in descriptions, dumps and logs.
package struct SecretHeaders: Hashable, Sendable {
    /// The fields with their values, for the request.
    package let exposed: HeaderList

    package init(_ exposed: HeaderList = HeaderList()) { self.exposed = exposed }

    /// The fields of a headers file: `Name: value`, one per line (``CredentialsText``).
    ///
    /// Throws an error for `key`, with the number of the invalid line and without its content.
    package init(file bytes: [UInt8], key: String) throws(TracingSettingsError) {
        do {
            self.init(try CredentialsText.parse(bytes))
        } catch {
            throw TracingSettingsError(key, "has invalid content: \(error.message)")
        }
    }

    /// The fields with others in addition; those replace fields of the same name.
    func adding(_ fields: [HeaderList.Field]) -> SecretHeaders {
        var headers = exposed
        for field in fields { headers.set(field.name, field.value) }
        return SecretHeaders(headers)
    }
}

extension SecretHeaders: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { exposed.fields.map { "\($0.name): •••" }.joined(separator: ", ") }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
