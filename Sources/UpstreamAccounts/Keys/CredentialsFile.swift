import CacheCore

/// The shared credentials file of AWS: sections with `name = value` lines.
///
/// Source: AWS SDKs and Tools Reference Guide, "Shared config and credentials files".
enum CredentialsFile {
    /// The keys of a section, `[profile]` or `[profile profile]`.
    ///
    /// Throws `.upstreamProtocol` if the section is missing or has no keys. The error does not contain values.
    static func keys(in bytes: [UInt8], profile: String) throws(CacheError) -> AccessKeys {
        guard let section = try section(profile, in: bytes) else {
            throw CacheError(.upstreamProtocol, "The AWS credentials file has no section [\(profile)].")
        }
        if section["aws_access_key_id"] == nil {
            let foreign = ["credential_process", "role_arn", "sso_session", "sso_start_url", "web_identity_token_file"]
            if let setting = foreign.first(where: { section[$0] != nil }) {
                throw CacheError(
                    .upstreamProtocol,
                    "Section [\(profile)] of the AWS credentials file uses \(setting), which is not supported; give "
                        + "aws_access_key_id and aws_secret_access_key, or set auth.credentials.")
            }
        }
        return try AccessKeys(
            section["aws_access_key_id"], section["aws_secret_access_key"], section["aws_session_token"],
            from: "Section [\(profile)] of the AWS credentials file")
    }

    /// The settings of a section with names in lower case; those without a value are left out. Nil if there is no such
    /// section.
    ///
    /// Lines that are indented more than a setting without a value above them are its group, such as `s3 =`, which
    /// contains no keys. Otherwise indentation has no meaning.
    private static func section(_ profile: String, in bytes: [UInt8]) throws(CacheError) -> [String: String]? {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw CacheError(.upstreamProtocol, "The AWS credentials file is not UTF-8 text.")
        }
        var settings: [String: String]?
        var isWanted = false
        // The indentation of a group above the line; nil: there is none.
        var group: Int?
        for raw in text.utf8.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }).map(Substring.init) {
            let line = FieldText.trimmed(raw)
            let indentation = raw.utf8.prefix { $0 == 0x20 || $0 == 0x09 }.count
            guard let first = line.utf8.first, first != UInt8(ascii: "#"), first != UInt8(ascii: ";"),
                group.map({ indentation <= $0 }) ?? true
            else { continue }
            group = nil
            if first == UInt8(ascii: "[") {
                isWanted = name(ofSection: line) == profile
                if isWanted, settings == nil { settings = [:] }
            } else if let separator = line.utf8.firstIndex(where: { $0 == UInt8(ascii: "=") || $0 == UInt8(ascii: ":") }
            ) {
                let name = FieldText.lowered(FieldText.trimmed(line[..<separator]))
                let value = value(line[line.utf8.index(after: separator)...])
                if value.isEmpty { group = indentation }
                if isWanted { settings?[name] = value.isEmpty ? nil : value }
            }
        }
        return settings
    }

    /// The value behind the separator, without the comment that a blank and `#` or `;` begin.
    private static func value(_ text: Substring) -> String {
        let bytes = text.utf8
        let comment = bytes.indices.first { index in
            guard index > bytes.startIndex, bytes[index] == UInt8(ascii: "#") || bytes[index] == UInt8(ascii: ";")
            else {
                return false
            }
            return [0x20, 0x09].contains(bytes[bytes.index(before: index)])
        }
        return String(FieldText.trimmed(text[..<(comment ?? text.endIndex)]))
    }

    /// The profile of a section line; nil if the line is malformed.
    private static func name(ofSection line: Substring) -> String? {
        guard let end = line.firstIndex(of: "]") else { return nil }
        let name = FieldText.trimmed(line[..<end].dropFirst())
        guard name.hasPrefix("profile"), let blank = name.dropFirst(7).first, blank == " " || blank == "\t" else {
            return String(name)
        }
        return String(FieldText.trimmed(name.dropFirst(7)))
    }
}
