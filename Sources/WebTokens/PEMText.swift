/// Reader for PEM text (RFC 7468). Text around the blocks and blocks of other types are skipped, because OpenSSL writes
/// `EC PARAMETERS` before an EC key and certificates before a private key.
enum PEMText {
    /// The type of the first block that has one of `labels`, and its DER bytes. Nil if there is none or its Base64 is
    /// invalid.
    static func block(of labels: Set<String>, in text: String) -> (label: String, der: [UInt8])? {
        guard text.utf8.count <= 64 * 1024 else { return nil }
        var open: String?
        var characters: [UInt8] = []
        for line in text.split(whereSeparator: \.isNewline) {
            let line = trimmed(line)
            if let label = open {
                guard line == "-----END \(label)-----" else {
                    characters += line.utf8
                    continue
                }
                guard let der = decoded(characters) else { return nil }
                return (label, der)
            }
            guard line.hasPrefix("-----BEGIN "), line.hasSuffix("-----") else { continue }
            let label = String(line.dropFirst(11).dropLast(5))
            if labels.contains(label) { open = label }
        }
        return nil
    }

    /// Decodes Base64 with padding (RFC 4648 §4).
    private static func decoded(_ characters: [UInt8]) -> [UInt8]? {
        guard characters.count.isMultiple(of: 4), !characters.isEmpty else { return nil }
        let padding = characters.suffix(2).reversed().prefix { $0 == UInt8(ascii: "=") }.count
        return Base64URL.decode(characters.dropLast(padding)) { character in
            switch character {
            case UInt8(ascii: "+"): 62
            case UInt8(ascii: "/"): 63
            default: Base64URL.alphanumericValue(of: character)
            }
        }
    }

    /// The line without blanks at its ends.
    private static func trimmed(_ line: Substring) -> Substring {
        var line = line.drop { $0 == " " || $0 == "\t" }
        while line.last == " " || line.last == "\t" { line.removeLast() }
        return line
    }
}
