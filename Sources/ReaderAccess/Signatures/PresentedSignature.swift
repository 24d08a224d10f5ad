/// A signature as a request presented it, not verified yet. Its description hides it.
package struct PresentedSignature: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    /// The form of the signature.
    enum Form: Hashable, Sendable {
        case query(expiry: String, keyID: String, signature: String, prefix: String?)
        case path(token: String)
        case uriSigning(token: String)
        /// A parameter occurs twice.
        case ambiguous
    }

    let form: Form

    init(_ form: Form) { self.form = form }

    /// The value of the cookie `URISigningPackage` (RFC 9246 §3.1), the transport of renewed tokens.
    package init(cookie token: String) { form = .uriSigning(token: token) }

    package var description: String { "(signature)" }
    package var debugDescription: String { description }

    /// Removes the signature from a request target; the rest stays byte for byte.
    ///
    /// Recognized are `/t/{token}` before `/o/`, the parameter `URISigningPackage` in the path or the query, and the
    /// query parameters `exp`, `kid` and `sig`, if all three are present, with `prefix`. The first of the path token,
    /// the query parameters and the package is presented; the others are removed too, so that they reach neither cache
    /// keys nor upstreams nor logs.
    ///
    /// - Parameter target: The request target in origin form: path and query.
    package static func strip(target: String) -> (cleanTarget: String, presented: PresentedSignature?) {
        let (afterToken, token) = withoutPathToken(target)
        let (rest, packages) = SigningPackage.remove(from: afterToken)
        let form: Form? =
            if let token {
                .path(token: token)
            } else if let package = packages.first {
                packages.count == 1 ? .uriSigning(token: package) : .ambiguous
            } else {
                nil
            }
        guard let mark = rest.utf8.firstIndex(of: UInt8(ascii: "?")) else {
            return (String(rest), form.map { PresentedSignature($0) })
        }
        let fields = rest[rest.utf8.index(after: mark)...].utf8
            .split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).map(Substring.init)
        guard Set(fields.compactMap(name)).isSuperset(of: ["exp", "kid", "sig"]) else {
            return (String(rest), form.map { PresentedSignature($0) })
        }
        let kept = fields.filter { name(of: $0) == nil }
        let clean = rest[..<mark] + (kept.isEmpty ? "" : "?" + kept.joined(separator: "&"))
        return (String(clean), PresentedSignature(token.map { .path(token: $0) } ?? queryForm(fields)))
    }

    /// Whether the path begins like one with a token, `/t/`, in any spelling: with repeated slashes, dot segments,
    /// percent-encoding, backslashes or capitals.
    package static func resemblesPathToken(_ target: String) -> Bool {
        let start = target.prefix { $0 != "?" }.prefix(64)
        let first = LoggedPath.parts(of: start).first { !$0.isEmpty && $0 != [UInt8(ascii: ".")] }
        return first.map(LoggedPath.announcesToken) ?? false
    }

    /// Removes `/t/{token}` from a target that continues with `/o/`.
    private static func withoutPathToken(_ target: String) -> (rest: Substring, token: String?) {
        guard target.utf8.starts(with: "/t/".utf8) else { return (target[...], nil) }
        let rest = target.utf8.dropFirst(3)
        guard let slash = rest.firstIndex(of: UInt8(ascii: "/")), rest[slash...].starts(with: "/o/".utf8),
            !rest[..<slash].contains(UInt8(ascii: "?"))
        else { return (target[...], nil) }
        return (Substring(rest[slash...]), String(Substring(rest[..<slash])))
    }

    private static func queryForm(_ fields: [Substring]) -> Form {
        let values = ["exp", "kid", "sig", "prefix"].map { wanted in
            fields.filter { name(of: $0) == wanted }.map { String($0.utf8.dropFirst(wanted.utf8.count + 1)) ?? "" }
        }
        guard values.allSatisfy({ $0.count <= 1 }), let expiry = values[0].first, let keyID = values[1].first,
            let signature = values[2].first
        else { return .ambiguous }
        return .query(expiry: expiry, keyID: keyID, signature: signature, prefix: values[3].first)
    }

    /// The names of the query parameters with the `=` behind them.
    private static let prefixes = ["exp", "kid", "sig", "prefix"].map { ($0, Array(($0 + "=").utf8)) }

    /// The name of a query field that may belong to a signature; nil for another field, or one without `=`.
    private static func name(of field: Substring) -> String? {
        prefixes.first { field.utf8.starts(with: $0.1) }?.0
    }
}
