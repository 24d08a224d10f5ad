import CacheCore
import NIOCore
import NIOSSL
import NIOTLS

/// The names in the client certificate of one connection. They authorize its requests without `Authorization`.
///
/// TLS has verified the certificate before: `listen.tls.clientCAFile` has issued it, and it is valid now.
final class ClientCertificate: Sendable {
    /// Guards the names; empty until the end of the handshake, and without a certificate.
    private let state = OrderedMutex<[String]>(.leaf, [])

    /// The names as in the tokens file: `CN=player`, `DNS:player.example`, `URI:spiffe://…`, `EMAIL:…`.
    var subjects: [String] { state.withLock { $0 } }

    fileprivate func set(_ subjects: [String]) { state.withLock { $0 = subjects } }
}

/// Channel handler that reads the client certificate at the end of the TLS handshake.
final class ClientCertificateHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = NIOAny

    private let certificate: ClientCertificate

    init(_ certificate: ClientCertificate) { self.certificate = certificate }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent,
            // The look-up fails without a TLS handler, and there is always one before this handler.
            let peer = try? context.pipeline.syncOperations.nioSSL_peerCertificate()
        {
            certificate.set(peer.subjects)
        }
        context.fireUserInboundEventTriggered(event)
    }
}

@available(*, unavailable)
extension ClientCertificateHandler: Sendable {}

extension NIOSSLCertificate {
    /// The common names of the subject and the subject alternative names, each with its type.
    var subjects: [String] {
        // A certificate that was parsed once has a DER form.
        let commonNames = (try? toDERBytes()).map { CertificateSubject.commonNames(inDER: $0) } ?? []
        let alternatives = _subjectAlternativeNames().compactMap { name -> String? in
            let prefix: String
            switch name.nameType {
            case .dnsName: prefix = "DNS:"
            case .uri: prefix = "URI:"
            case .email: prefix = "EMAIL:"
            default: return nil
            }
            let bytes = name.contents.withUnsafeBufferPointer { Array($0) }
            // A NUL byte would hide the rest of a name from other programs.
            guard !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else { return nil }
            return prefix + text
        }
        return commonNames.map { "CN=" + $0 } + alternatives
    }
}

/// Reader for the subject of an X.509 certificate (RFC 5280 §4.1) in DER (ITU-T X.690).
enum CertificateSubject {
    /// One element: its tag and its content.
    private struct Element {
        var tag: UInt8
        var content: ArraySlice<UInt8>
    }

    private static let sequence: UInt8 = 0x30
    private static let set: UInt8 = 0x31
    private static let objectIdentifier: UInt8 = 0x06
    private static let version: UInt8 = 0xA0
    /// The object identifier 2.5.4.3, `commonName`.
    private static let commonName: [UInt8] = [0x55, 0x04, 0x03]
    /// UTF8String, PrintableString, IA5String: their bytes are UTF-8 text.
    private static let texts: Set<UInt8> = [0x0C, 0x13, 0x16]

    /// The common names of the subject, in order; none for malformed bytes.
    ///
    /// The fields of the certificate before the subject are the version (optional), the serial number, the signature
    /// algorithm, the issuer and the validity.
    static func commonNames(inDER bytes: [UInt8]) -> [String] {
        guard let certificate = elements(bytes[...])?.first, certificate.tag == sequence,
            let signed = elements(certificate.content)?.first, signed.tag == sequence,
            let fields = elements(signed.content)
        else { return [] }
        let subject = fields.first?.tag == version ? 5 : 4
        guard fields.count > subject, fields[subject].tag == sequence,
            let names = elements(fields[subject].content)
        else { return [] }
        return names.flatMap { name in
            (name.tag == set ? elements(name.content) ?? [] : []).compactMap { commonName(of: $0) }
        }
    }

    /// The value of an attribute `commonName`; nil for other attributes, and for text with a NUL byte.
    private static func commonName(of attribute: Element) -> String? {
        guard attribute.tag == sequence, let parts = elements(attribute.content), parts.count == 2,
            parts[0].tag == objectIdentifier, parts[0].content.elementsEqual(commonName),
            texts.contains(parts[1].tag), !parts[1].content.contains(0)
        else { return nil }
        return String(validating: parts[1].content, as: UTF8.self)
    }

    /// The consecutive elements in `bytes`; nil if an element is incomplete or has an indefinite length.
    private static func elements(_ bytes: ArraySlice<UInt8>) -> [Element]? {
        var (rest, found): (ArraySlice<UInt8>, [Element]) = (bytes, [])
        while let tag = rest.popFirst() {
            guard let first = rest.popFirst() else { return nil }
            var length = Int(first)
            if first >= 0x80 {
                let digits = Int(first & 0x7F)
                guard (1...4).contains(digits), rest.count >= digits else { return nil }
                length = rest.prefix(digits).reduce(0) { $0 << 8 | Int($1) }
                rest = rest.dropFirst(digits)
            }
            guard rest.count >= length else { return nil }
            found.append(Element(tag: tag, content: rest.prefix(length)))
            rest = rest.dropFirst(length)
        }
        return found
    }
}
