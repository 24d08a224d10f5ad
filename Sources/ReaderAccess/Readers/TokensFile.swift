package import CacheCore

/// The parsed tokens file: `{"tokens": [{"id", "sha256" | "subjects", "scope", …}]}`.
package struct TokensFile: Hashable, Sendable {
    /// One token of the file.
    package struct Entry: Hashable, Sendable {
        package var reader: Reader
        /// SHA-256 of the token; nil if the reader has certificates only.
        package var digest: TokenDigest?
        /// Certificate names: `CN=…`, `DNS:…`, `URI:…`, `EMAIL:…`.
        package var subjects: [String]

        package init(reader: Reader, digest: TokenDigest?, subjects: [String] = []) {
            self.reader = reader
            self.digest = digest
            self.subjects = subjects
        }
    }

    /// The tokens in the order of the file.
    package let entries: [Entry]

    /// Parses the text of the file.
    ///
    /// Throws `.malformedRequest` if it is not JSON, and `.invalidField` with the member's path for: an unknown member;
    /// an `id` that is not unique or has other characters than 1 to 64 of `A–Z a–z 0–9 . _ -`; a missing `scope`; a
    /// `sha256` that has not 64 hexadecimal digits; an entry with neither `sha256` nor `subjects`; a digest or subject
    /// of two entries; more than 10,000 tokens. No error contains a digest.
    package static func parse(_ text: some Sequence<UInt8>) throws(CacheError) -> TokensFile {
        let document: JSON
        do {
            document = try JSONParser.parse(text)
        } catch {
            let reason = error.message.hasPrefix("The body") ? error.message.dropFirst(8)[...] : " is not JSON."
            throw CacheError(error.code, "The tokens file\(reason)")
        }
        return try TokensFile(document)
    }

    /// Makes the file from its JSON document; throws as ``parse(_:)``.
    package init(_ document: JSON) throws(CacheError) {
        guard let entries = try document.decode(Document.self).tokens?.values else {
            throw .invalid("tokens", "The list of tokens is missing.")
        }
        var (ids, digests): (Set<String>, Set<TokenDigest>) = ([], [])
        var subjects: Set<[UInt8]> = []
        for (index, entry) in entries.enumerated() {
            let (path, id) = ("tokens[\(index)]", entry.reader.id)
            guard ids.insert(id).inserted else { throw .invalid("\(path).id", "The id \(id) occurs twice.") }
            if let digest = entry.digest, !digests.insert(digest).inserted {
                throw .invalid("\(path).sha256", "The token of \(id) has the digest of another entry.")
            }
            for subject in entry.subjects where !subjects.insert(Self.comparable(subject)).inserted {
                throw .invalid("\(path).subjects", "A subject of \(id) occurs twice in the file.")
            }
        }
        self.entries = entries
    }

    private struct Document: Decodable { var tokens: List<10_000, Entry>? }

    /// The file as a JSON document, for `larder token new`.
    package var json: JSON { ["tokens": .array(entries.map(\.json))] }

    /// Whether the text has 1 to 64 of the characters `A–Z a–z 0–9 . _ -`.
    package static func isIdentifier(_ text: some StringProtocol) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                FieldText.isLetter($0) || FieldText.isDigit($0) || "._-".utf8.contains($0)
            }
    }

    /// A certificate name as bytes; DNS names in lower case (RFC 5280 §7.2). The equality of `String` would ignore
    /// differences of Unicode normalization.
    static func comparable(_ subject: String) -> [UInt8] {
        Array((subject.hasPrefix("DNS:") ? FieldText.lowered(subject) : subject).utf8)
    }
}

extension TokensFile.Entry: Decodable {
    private struct Document: Decodable {
        var id, sha256: String?
        var subjects: List<100, Checked<SubjectRule>>?
        var scope: AccessScope?
        var origins: List<1000, String>?
        var prefixes: List<100, Checked<PrefixRule>>?
        var expiresAt: Timestamp?
        var maxBytesPerSecond: Limited<Positive>?
        var maxSignatureSeconds: Limited<Positive>?
        var sharedCache: Bool?
    }

    /// Certificate names of a known kind with a value.
    private enum SubjectRule: TextRule {
        static let expectation = "A name like CN=…, DNS:…, URI:… or EMAIL:… is expected here."
        static func permits(_ text: String) -> Bool {
            (1...1024).contains(text.utf8.count)
                && ["CN=", "DNS:", "URI:", "EMAIL:"].contains { text.hasPrefix($0) && text.utf8.count > $0.utf8.count }
        }
    }

    package init(from decoder: any Decoder) throws {
        let document = try Document(from: decoder)
        guard let id = document.id, TokensFile.isIdentifier(id) else {
            throw decoder.invalid("An id has 1 to 64 of the characters A-Z, a-z, 0-9, '.', '_' and '-'.", at: "id")
        }
        guard let scope = document.scope else {
            throw decoder.invalid("The scope of \(id) is missing: read, write, sign or admin.", at: "scope")
        }
        digest = document.sha256.flatMap { TokenDigest(hexDigits: $0) }
        if digest == nil, document.sha256 != nil {
            throw decoder.invalid("The SHA-256 of the token of \(id) must have 64 hexadecimal digits.", at: "sha256")
        }
        subjects = document.subjects?.values.map(\.text) ?? []
        guard digest != nil || !subjects.isEmpty else {
            throw decoder.invalid("The entry \(id) needs sha256 or subjects.", at: "sha256")
        }
        reader = Reader(
            id: id, scope: scope, origins: document.origins.map { Set($0.values) },
            prefixes: document.prefixes?.values.map(\.text), expiresAt: document.expiresAt,
            maxBytesPerSecond: document.maxBytesPerSecond?.value,
            maxSignatureSeconds: document.maxSignatureSeconds?.value, isSharedCache: document.sharedCache ?? false)
    }

    /// The entry as a member of `tokens`.
    package var json: JSON {
        JSON(present: [
            "id": .string(reader.id), "sha256": digest.map { .string($0.hexDigits) },
            "subjects": subjects.isEmpty ? nil : .array(subjects.map(JSON.string)),
            "scope": .string(reader.scope.rawValue),
            "origins": reader.limits.origins.map { .array($0.sorted().map(JSON.string)) },
            "prefixes": reader.limits.prefixes.map { .array($0.map(JSON.string)) },
            "expiresAt": reader.expiresAt.map { .string(RFC3339.format($0)) },
            "maxBytesPerSecond": reader.maxBytesPerSecond.map(JSON.integer),
            "maxSignatureSeconds": reader.maxSignatureSeconds.map(JSON.integer),
            "sharedCache": reader.isSharedCache ? .bool(true) : nil,
        ])
    }
}

/// Prefixes of content paths.
enum PrefixRule: TextRule {
    static let expectation = "A path like /o/media/public/ without dot segments is expected here."
    static func permits(_ text: String) -> Bool { PathPrefix(text) != nil }
}
