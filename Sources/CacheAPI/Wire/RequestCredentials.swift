package import CacheCore
import HTTPTypes
package import ReaderAccess
import WebTokens

/// The proofs of identity that a request has.
package struct RequestCredentials: Sendable {
    /// The value of `Authorization`; several fields are one list.
    package var authorization: String?
    /// The names in the client certificate of the connection; empty without one.
    package var subjects: [String]
    /// The signature in the target; nil without one.
    package var signature: PresentedSignature?
    /// The values of the cookie of RFC 9246, in the order of the request. A browser sends those of several paths.
    package var cookies: [PresentedSignature]

    /// The maximum number of cookies and of words in `Authorization` that are tried.
    private static let cookieLimit = 8
    private static let wordLimit = 128

    package init(
        authorization: String? = nil, subjects: [String] = [], signature: PresentedSignature? = nil,
        cookies: [PresentedSignature] = []
    ) {
        self.authorization = authorization
        self.subjects = subjects
        self.signature = signature
        self.cookies = cookies
    }

    /// The credentials in the fields of a request.
    init(_ fields: HTTPFields, subjects: [String], signature: PresentedSignature?) {
        self.init(authorization: fields[.authorization], subjects: subjects, signature: signature)
        guard signature == nil, fields.contains(.cookie) else { return }
        let name = SigningPackage.name + "="
        let pairs = fields[values: .cookie].lazy.flatMap { $0.split(separator: ";") }
            .map(FieldText.trimmed).filter { $0.hasPrefix(name) }
        cookies = pairs.prefix(Self.cookieLimit).map {
            PresentedSignature(cookie: String($0.dropFirst(name.count)))
        }
    }

    /// The bearer token (RFC 6750 §2.1); nil without one. Any white space around it is ignored.
    var bearerToken: String? {
        guard let text = authorization.map({ FieldText.trimmed($0[...]) }), text.utf8.count > 7,
            text.prefix(6).lowercased() == "bearer", let space = text.utf8.dropFirst(6).first,
            FieldText.isBlank(space)
        else { return nil }
        return String(FieldText.trimmed(text.dropFirst(7)))
    }

    /// All texts in `Authorization` that can be tokens, whatever the number of credentials, their schemes and their
    /// codings: the parts between white space, commas and quotation marks, the runs of characters of bearer tokens
    /// (RFC 6750 §2.1), and the runs of letters, digits, `-` and `_`; also after percent-decoding and Base64-decoding.
    var authorizationWords: [String] {
        guard let authorization else { return [] }
        let words = Self.parts(of: Array(authorization.utf8), where: Self.isWordByte)
        var texts = [Array(authorization.utf8), PercentEncoding.decoded(authorization)]
        texts += words.compactMap(Self.decoded)
        // Each split divides the parts of the one before.
        var parts = texts.flatMap { Self.parts(of: $0, where: Self.isWordByte) }
        var runs = parts
        for isPart in [Self.isTokenByte, FieldText.isBase64URL] {
            parts = parts.flatMap { Self.parts(of: Array($0.utf8), where: isPart) }
            runs += parts
        }
        var seen: Set<String> = []
        return runs.filter { seen.insert($0).inserted }.prefix(Self.wordLimit).map(\.self)
    }

    /// Whether the byte is neither white space nor a comma nor a quotation mark.
    private static func isWordByte(_ byte: UInt8) -> Bool {
        !FieldText.isBlank(byte) && byte != UInt8(ascii: ",") && byte != UInt8(ascii: "\"")
    }

    /// Whether the byte can be part of a bearer token.
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        FieldText.isBase64URL(byte) || "._~+/=".utf8.contains(byte)
    }

    /// The runs of bytes where `isPart` is true.
    private static func parts(of text: [UInt8], where isPart: (UInt8) -> Bool) -> [String] {
        text.split { !isPart($0) }.map { String(decoding: $0, as: UTF8.self) }
    }

    /// The decoded bytes of a word in Base64, such as Basic credentials (RFC 7617 §2); nil for another word.
    private static func decoded(_ word: String) -> [UInt8]? {
        Base64URL.decode(word.replacing("+", with: "-").replacing("/", with: "_").prefix { $0 != "=" })
    }
}

/// The result of an authorization.
package struct Admission: Sendable {
    /// The reader; nil if the request has no credentials and needs none.
    package var reader: Reader?
    /// Whether a signed URL or a cookie gave the permission. It is checked for each request.
    package var isSigned = false
    /// The cookie that the response must set; nil: none.
    package var renewal: SignatureGrant.Renewal?
    /// The permission of caches in front of the service to share the response.
    package var sharing = ResponseSharing.asStated

    package init(_ reader: Reader?) { self.reader = reader }

    /// The admission of a signature. Its reader has no limits: the signature covers exactly the request.
    init(_ grant: SignatureGrant) {
        reader = Reader(id: grant.readerID, scope: .read)
        isSigned = true
        renewal = grant.renewal
        sharing = grant.expiresAt.map { .until($0) } ?? .asStated
    }
}

extension SignatureGrant.Renewal {
    /// The value of `Set-Cookie` (RFC 6265 §4.1). The date is rounded up to seconds; the token has the exact end.
    ///
    /// - Parameter isEncrypted: Whether clients use https: then the cookie is sent over https only.
    func cookie(isEncrypted: Bool) -> String {
        let end = HTTPDate.format(expiresAt + .milliseconds(999))
        return "\(SigningPackage.name)=\(token); Path=\(path); Expires=\(end); HttpOnly"
            + (isEncrypted ? "; Secure" : "")
    }
}

/// The content that a request names, for signatures.
package struct SignedContent: Sendable {
    /// The path without the signature, as received.
    package var path: String
    /// The query without the signature; nil: none.
    package var query: String?
    /// The scheme and authority of the request.
    package var base: String

    package init(path: String, query: String?, base: String) {
        self.path = path
        self.query = query
        self.base = base
    }
}

extension CacheError {
    /// The error of a refused signature.
    init(_ refusal: AccessRefusal) {
        let code: Code =
            switch refusal.reason {
            case .tokenExpired: .tokenExpired
            case .tokenInvalid: .tokenInvalid
            case .tokenScope: .tokenScope
            }
        self.init(code, refusal.message)
        // A bearer token is not the reason of the refusal, but could help.
        if code == .tokenScope { challenge = BearerChallenge.withoutError }
    }
}
