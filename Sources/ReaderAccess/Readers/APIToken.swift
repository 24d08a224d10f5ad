package import CacheCore

/// A token that was made over the API: its entry, as in the tokens file, and its origin.
package struct APIToken: Hashable, Sendable {
    package var entry: TokensFile.Entry
    package var createdAt: Timestamp
    /// The name of the token that made it.
    package var createdBy: String?

    package init(entry: TokensFile.Entry, createdAt: Timestamp, createdBy: String?) {
        self.entry = entry
        self.createdAt = createdAt
        self.createdBy = createdBy
    }

    private struct Document: Decodable {
        var token: TokensFile.Entry
        var createdAt: Timestamp
        var createdBy: String?
    }

    /// Reads the stored form. Throws `.invalidField` or `.malformedRequest` for another one.
    package init(document: String) throws(CacheError) {
        let document = try JSONParser.parse(document.utf8).decode(Document.self)
        self.init(entry: document.token, createdAt: document.createdAt, createdBy: document.createdBy)
    }

    /// The stored form: JSON with the digest of the secret.
    package var document: String {
        JSON(present: [
            "token": entry.json, "createdAt": .string(RFC3339.format(createdAt)),
            "createdBy": createdBy.map(JSON.string),
        ]).text
    }
}

/// A token of any source with its rights.
package struct ListedToken: Sendable {
    /// The place where the token is defined. Of two tokens with one name, that of the earlier place is in force.
    package enum Source: Int, Sendable, CaseIterable {
        case configuration, file, api
    }

    package var reader: Reader
    package var source: Source
    /// Certificate names of an entry of the tokens file.
    package var subjects: [String] = []
    /// Of a token of the API.
    package var createdAt: Timestamp?
    package var createdBy: String?
    /// Whether a token of another source has its name or its digest, so that this one has no effect.
    package var isOverridden = false
}

extension ListedToken {
    package init(_ token: APIToken, isOverridden: Bool = false) {
        self.init(
            reader: token.entry.reader, source: .api, createdAt: token.createdAt, createdBy: token.createdBy,
            isOverridden: isOverridden)
    }
}

extension Reader {
    /// The first member by which `other` would have more rights than this reader; nil: it has no more.
    package func member(exceededBy other: Reader) -> String? {
        if !scope.includes(other.scope) { return "scope" }
        if !limits.confine(other.limits) { return limits.prefixes == nil ? "origins" : "prefixes" }
        if let expiresAt, other.expiresAt.map({ $0 > expiresAt }) ?? true { return "expiresAt" }
        if let most = maxBytesPerSecond, other.maxBytesPerSecond.map({ $0 > most }) ?? true {
            return "maxBytesPerSecond"
        }
        if let most = maxSignatureSeconds, other.signsURLs, other.maxSignatureSeconds.map({ $0 > most }) ?? true {
            return "maxSignatureSeconds"
        }
        return isLimited && other.isSharedCache && !isSharedCache ? "sharedCache" : nil
    }
}
