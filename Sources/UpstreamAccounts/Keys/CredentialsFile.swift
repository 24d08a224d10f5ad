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

    /// The settings of a section with names in lower case. Nil if there is no such section.
    private static func section(_ profile: String, in bytes: [UInt8]) throws(CacheError) -> [String: String]? {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw CacheError(.upstreamProtocol, "The AWS credentials file is not UTF-8 text.")
        }
        var settings: [String: String]?
        var isWanted = false
        let lines = text.utf8.split { $0 == 0x0A || $0 == 0x0D }
        for (index, bytes) in lines.enumerated() {
            let raw = Substring(bytes)
            // An indented line belongs to the group of the line before it; groups contain no keys.
            let isNested = raw.first == " " || raw.first == "\t"
            let line = FieldText.trimmed(index == 0 && raw.hasPrefix("\u{FEFF}") ? raw.dropFirst() : raw)
            guard let first = line.first, first != "#", first != ";", !isNested else { continue }
            if first == "[" {
                isWanted = name(ofSection: line) == profile
                if isWanted, settings == nil { settings = [:] }
            } else if isWanted, let equals = line.firstIndex(of: "=") {
                let name = FieldText.lowered(FieldText.trimmed(line[..<equals]))
                settings?[name] = String(FieldText.trimmed(line[line.index(after: equals)...]))
            }
        }
        return settings
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
