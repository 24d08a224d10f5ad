package import CacheCore

/// The parsed tokens file: `{"tokens": [{"id", "sha256" | "subjects", "scope", …}]}`.
package struct TokensFile: Hashable, Sendable {
    /// The maximum number of tokens.
    package static let tokenLimit = 10_000

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
        let fields = try JSONFields(document, accepting: ["tokens"])
        guard let tokens = try fields.array("tokens", atMost: Self.tokenLimit) else {
            throw fields.invalid("tokens", "The list of tokens is missing.")
        }
        var entries: [Entry] = []
        var (ids, digests): (Set<String>, Set<TokenDigest>) = ([], [])
        var subjects: Set<[UInt8]> = []
        for (index, token) in tokens.enumerated() {
            let fields = try JSONFields(token, at: "tokens[\(index)]", accepting: Self.members)
            let entry = try Self.entry(fields)
            guard ids.insert(entry.reader.id).inserted else {
                throw fields.invalid("id", "The id \(entry.reader.id) occurs twice.")
            }
            if let digest = entry.digest, !digests.insert(digest).inserted {
                throw fields.invalid("sha256", "The token of \(entry.reader.id) has the digest of another entry.")
            }
            for subject in entry.subjects where !subjects.insert(Self.comparable(subject)).inserted {
                throw fields.invalid("subjects", "A subject of \(entry.reader.id) occurs twice in the file.")
            }
            entries.append(entry)
        }
        self.entries = entries
    }

    /// The file as a JSON document, for `larder token new`.
    package var json: JSON { ["tokens": .array(entries.map(\.json))] }

    private static let members = [
        "id", "sha256", "subjects", "scope", "origins", "prefixes", "expiresAt", "maxBytesPerSecond",
    ]

    /// Reads one entry.
    private static func entry(_ fields: JSONFields) throws(CacheError) -> Entry {
        guard let id = try fields.string("id"), isIdentifier(id) else {
            throw fields.invalid("id", "An id has 1 to 64 of the characters A-Z, a-z, 0-9, '.', '_' and '-'.")
        }
        guard let scope = try fields.choice("scope", AccessScope.self) else {
            throw fields.invalid("scope", "The scope of \(id) is missing: read, write or admin.")
        }
        var digest: TokenDigest?
        if let text = try fields.string("sha256") {
            digest = TokenDigest(hexDigits: text)
            guard digest != nil else {
                throw fields.invalid("sha256", "The SHA-256 of the token of \(id) must have 64 hexadecimal digits.")
            }
        }
        let subjects =
            try fields.values("subjects", atMost: 100, "A name like CN=…, DNS:…, URI:… or EMAIL:… is expected here.") {
                isSubject($0) ? $0 : nil
            } ?? []
        guard digest != nil || !subjects.isEmpty else {
            throw fields.invalid("sha256", "The entry \(id) needs sha256 or subjects.")
        }
        let prefixes = try fields.values(
            "prefixes", atMost: 100, "A path like /o/media/public/ without dot segments is expected here."
        ) { PathPrefix($0) == nil ? nil : $0 }
        let reader = Reader(
            id: id, scope: scope, origins: try fields.strings("origins", atMost: 1000).map { Set($0) },
            prefixes: prefixes, expiresAt: try fields.instant("expiresAt"),
            maxBytesPerSecond: try fields.integer("maxBytesPerSecond", in: 1...Int64.max))
        return Entry(reader: reader, digest: digest, subjects: subjects)
    }

    /// Whether the text has 1 to 64 of the characters `A–Z a–z 0–9 . _ -`.
    package static func isIdentifier(_ text: some StringProtocol) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                FieldText.isLetter($0) || FieldText.isDigit($0) || "._-".utf8.contains($0)
            }
    }

    /// Whether the text is a certificate name of a known kind with a value.
    private static func isSubject(_ text: String) -> Bool {
        (1...1024).contains(text.utf8.count)
            && ["CN=", "DNS:", "URI:", "EMAIL:"].contains { text.hasPrefix($0) && text.utf8.count > $0.utf8.count }
    }

    /// A certificate name as bytes; DNS names in lower case (RFC 5280 §7.2). The equality of `String` would ignore
    /// differences of Unicode normalization.
    static func comparable(_ subject: String) -> [UInt8] {
        Array((subject.hasPrefix("DNS:") ? FieldText.lowered(subject) : subject).utf8)
    }
}

extension TokensFile.Entry {
    /// The entry as a member of `tokens`.
    package var json: JSON {
        var members = [JSON.Member("id", .string(reader.id))]
        if let digest { members.append(JSON.Member("sha256", .string(digest.hexDigits))) }
        if !subjects.isEmpty { members.append(JSON.Member("subjects", .array(subjects.map(JSON.string)))) }
        members.append(JSON.Member("scope", .string(reader.scope.rawValue)))
        if let origins = reader.origins {
            members.append(JSON.Member("origins", .array(origins.sorted().map(JSON.string))))
        }
        if let prefixes = reader.prefixes {
            members.append(JSON.Member("prefixes", .array(prefixes.map(JSON.string))))
        }
        if let time = reader.expiresAt { members.append(JSON.Member("expiresAt", .string(RFC3339.format(time)))) }
        if let rate = reader.maxBytesPerSecond { members.append(JSON.Member("maxBytesPerSecond", .integer(rate))) }
        return .object(members)
    }
}
