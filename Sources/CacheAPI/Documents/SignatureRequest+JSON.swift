package import CacheCore
package import ReaderAccess

extension SignatureRequest {
    /// The members of the schema.
    package static let keys = ["path", "scope", "form", "expiresInSeconds", "expiresAt", "kid"]
    /// The longest validity in seconds: ten years.
    private static let longest = 315_360_000.0

    /// Reads the `SignatureRequest` schema. Exactly one of `expiresInSeconds` and `expiresAt` is required. Throws
    /// `.invalidField`.
    package init(_ json: JSON, at now: Timestamp) throws(CacheError) {
        let fields = try JSONFields(json, accepting: Self.keys, nullable: ["expiresInSeconds", "expiresAt", "kid"])
        guard let path = try fields.string("path") else {
            throw fields.invalid("path", "The path is missing; give a path like /o/media/a.mp4.")
        }
        let expiry: Timestamp
        switch (try fields.seconds("expiresInSeconds", from: 1), try fields.instant("expiresAt")) {
        case (let span?, nil):
            guard span <= .seconds(Self.longest) else {
                throw fields.invalid("expiresInSeconds", "A signed URL is valid for at most ten years.")
            }
            expiry = now + span
        case (nil, let time?):
            guard time > now else {
                throw fields.invalid("expiresAt", "The end of the validity has passed: give a later time.")
            }
            expiry = time
        case (nil, nil):
            throw fields.invalid("expiresInSeconds", "The validity is missing; give expiresInSeconds or expiresAt.")
        case (.some, .some):
            throw fields.invalid("expiresAt", "The validity is given twice; give expiresInSeconds or expiresAt.")
        }
        self.init(
            path: path, scope: try fields.choice("scope") ?? .exact, form: try fields.choice("form") ?? .query,
            expiresAt: expiry, keyID: try fields.string("kid"))
    }
}
