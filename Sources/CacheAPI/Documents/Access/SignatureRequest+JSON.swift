package import CacheCore
package import ReaderAccess

extension SignatureRequest {
    private struct Document: Decodable {
        var path: String?
        var scope: Scope?
        var form: Form?
        var expiresInSeconds: Omittable<Limited<SecondsFromOne>>
        var expiresAt: Omittable<Timestamp>
        var kid: Omittable<String>
    }

    /// The members of the schema.
    package static var keys: [String] { JSON.keys(of: Document.self) }

    /// Reads the `SignatureRequest` schema. Exactly one of `expiresInSeconds` and `expiresAt` is required; null is the
    /// same as an absent member. Throws `.invalidField`.
    package init(_ json: JSON, at now: Timestamp) throws(CacheError) {
        let document = try json.decode(Document.self)
        guard let path = document.path else {
            throw .invalid("path", "The path is missing; give a path like /o/media/a.mp4.")
        }
        let expiry: Timestamp
        switch (document.expiresInSeconds.value, document.expiresAt.value) {
        case (let span?, nil): expiry = now + span.duration
        case (nil, let time?):
            guard time > now else {
                throw .invalid("expiresAt", "The end of the validity has passed: give a later time.")
            }
            expiry = time
        case (nil, nil):
            throw .invalid("expiresInSeconds", "The validity is missing; give expiresInSeconds or expiresAt.")
        case (.some, .some):
            throw .invalid("expiresAt", "The validity is given twice; give expiresInSeconds or expiresAt.")
        }
        self.init(
            path: path, scope: document.scope ?? .exact, form: document.form ?? .query, expiresAt: expiry,
            keyID: document.kid.value)
    }
}
