import CacheCore
import Cryptography

/// AWS Signature Version 4 in the `Authorization` field.
///
/// Source: AWS IAM User Guide, "Create a signed AWS API request"; Amazon S3 API Reference, "Signature Calculations for
/// the Authorization Header".
struct SignatureV4 {
    private static let algorithm = "AWS4-HMAC-SHA256"

    let keys: AccessKeys
    let region: String
    let service: String

    /// The hash of the payload in the canonical request.
    enum Payload {
        /// The hash of these bytes.
        case hashed([UInt8])
        /// `UNSIGNED-PAYLOAD`, for S3 only.
        case unsigned

        var text: String {
            switch self {
            case .hashed(let bytes): HashFunction.sha256.digest(of: bytes).hexDigits
            case .unsigned: "UNSIGNED-PAYLOAD"
            }
        }
    }

    /// A request as it is sent.
    struct Request {
        var method: String
        /// Percent-encoded; begins with `/`.
        var path: String
        var query: SignatureQuery
        /// The fields that are signed, with `Host` and `X-Amz-Date`.
        var headers: HeaderList
        var payload: Payload
    }

    /// Whether the service has the rules of S3: the path is encoded once and not normalized, and the payload may be
    /// unsigned.
    var isS3: Bool { Self.isS3(service) }

    static func isS3(_ service: String) -> Bool {
        ["s3", "s3-object-lambda", "s3-outposts", "s3express"].contains(service)
    }

    /// The value of `X-Amz-Date`: `20150830T123600Z`.
    static func date(_ time: Timestamp) -> String {
        // The format of RFC 3339 has a fraction of five characters with the zone.
        RFC3339.format(time).dropLast(5).filter { $0 != "-" && $0 != ":" } + "Z"
    }

    /// The value of `Authorization` for a request that is sent at `time`, the time of its `X-Amz-Date`.
    func authorization(for request: Request, at time: Timestamp) -> String {
        let scope = scope(at: time)
        return "\(Self.algorithm) Credential=\(keys.accessKeyID)/\(scope), "
            + "SignedHeaders=\(Self.names(of: request.headers)), Signature=\(signature(of: request, at: time))"
    }

    /// The canonical form of a request.
    func canonical(_ request: Request) -> String {
        let path = isS3 ? request.path : PercentEncoding.encoded(Self.normalized(request.path).utf8, keeping: "/")
        return [
            request.method, path, request.query.canonical, Self.canonical(request.headers),
            Self.names(of: request.headers), request.payload.text,
        ].joined(separator: "\n")
    }

    /// The text that is signed.
    func stringToSign(for request: Request, at time: Timestamp) -> String {
        let digest = HashFunction.sha256.digest(of: canonical(request).utf8).hexDigits
        return [Self.algorithm, Self.date(time), scope(at: time), digest].joined(separator: "\n")
    }

    private func signature(of request: Request, at time: Timestamp) -> String {
        var key = SymmetricKey(Array("AWS4\(keys.secretAccessKey)".utf8))
        for part in scope(at: time).split(separator: "/") {
            key = SymmetricKey(HashFunction.sha256.code(of: part.utf8, key))
        }
        return HashFunction.sha256.code(of: stringToSign(for: request, at: time).utf8, key).hexDigits
    }

    private func scope(at time: Timestamp) -> String {
        "\(Self.date(time).prefix(8))/\(region)/\(service)/aws4_request"
    }
}

// MARK: Canonical parts

extension SignatureV4 {
    /// The path without `.` and `..` segments and repeated slashes (RFC 3986 §6.2.2.3).
    private static func normalized(_ path: String) -> String {
        var segments: [Substring] = []
        for segment in path.split(separator: "/") where segment != "." {
            if segment == ".." { _ = segments.popLast() } else { segments.append(segment) }
        }
        let isDirectory = ["/", "/.", "/.."].contains { path.hasSuffix($0) }
        return segments.isEmpty ? "/" : "/" + segments.joined(separator: "/") + (isDirectory ? "/" : "")
    }

    /// The fields in the order of their names in lower case, each with a line break. The values of repeated fields are
    /// joined by commas.
    private static func canonical(_ headers: HeaderList) -> String {
        sortedNames(of: headers).map { name in
            name + ":" + headers.values(name).map(trimmed).joined(separator: ",") + "\n"
        }.joined()
    }

    private static func names(of headers: HeaderList) -> String { sortedNames(of: headers).joined(separator: ";") }

    private static func sortedNames(of headers: HeaderList) -> [String] {
        Set(headers.fields.map { FieldText.lowered($0.name) }).sorted()
    }

    /// The value with single spaces in place of white space, and none at both ends.
    private static func trimmed(_ value: String) -> String {
        value.utf8.split(whereSeparator: FieldText.isSpace)
            .map { String(decoding: $0, as: UTF8.self) }.joined(separator: " ")
    }
}
