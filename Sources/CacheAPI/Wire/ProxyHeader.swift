/// The header of the PROXY protocol, versions 1 and 2 (HAProxy, "The PROXY protocol", section 2): the addresses of a
/// connection that a proxy forwards.
package enum ProxyHeader {
    /// The result of parsing the first bytes of a connection.
    package enum Outcome: Hashable, Sendable {
        /// The bytes are the beginning of a header.
        case incomplete
        /// The header ends after `length` bytes.
        case complete(length: Int, source: Source)
        /// The bytes are no header; the text is a sentence.
        case malformed(String)
    }

    /// The client of the connection.
    package enum Source: Hashable, Sendable {
        case address(NetworkAddress)
        /// The proxy itself: `LOCAL`.
        case proxy
        /// A client whose address the proxy does not state: `UNKNOWN`, or a Unix socket of the proxy.
        case unknown
    }

    /// The maximum length of a header of version 1 (section 2.1).
    private static let maxLineBytes = 107
    /// The maximum length of the addresses and additions of version 2.
    private static let maxBlockBytes = 4096
    /// The longest header.
    package static let maxBytes = 16 + maxBlockBytes

    private static let line = Array("PROXY ".utf8)
    private static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]

    /// Parses the bytes that have arrived so far.
    package static func parse(_ bytes: [UInt8]) -> Outcome {
        if bytes.starts(with: signature) { return block(bytes) }
        if bytes.starts(with: line) { return text(bytes) }
        let isBegun = signature.starts(with: bytes) || line.starts(with: bytes)
        return isBegun ? .incomplete : .malformed("The connection does not begin with a PROXY header.")
    }

    /// Parses version 1: one line of text.
    private static func text(_ bytes: [UInt8]) -> Outcome {
        let head = bytes.prefix(maxLineBytes)
        guard let end = head.firstIndex(of: 0x0A) else {
            return head.count < maxLineBytes
                ? .incomplete : .malformed("The PROXY header is longer than \(maxLineBytes) bytes.")
        }
        guard bytes[end - 1] == 0x0D, let text = String(validating: bytes[..<(end - 1)], as: UTF8.self) else {
            return .malformed("The PROXY header does not end with CR LF.")
        }
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        if parts[1] == "UNKNOWN" { return .complete(length: end + 1, source: .unknown) }
        guard parts.count == 6, parts[1] == "TCP4" || parts[1] == "TCP6", parts[4...].allSatisfy(isPort) else {
            return .malformed("The PROXY header must state TCP4 or TCP6, two addresses and two ports, or UNKNOWN.")
        }
        let addresses = parts[2...3].compactMap { part in part.contains(":") == (parts[1] == "TCP6") ? part : nil }
            .compactMap { NetworkAddress($0) }
        guard addresses.count == 2 else { return .malformed("The PROXY header contains an invalid address.") }
        return .complete(length: end + 1, source: .address(addresses[0]))
    }

    private static func isPort(_ text: Substring) -> Bool {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) } && (text == "0" || text.first != "0")
            && UInt16(text) != nil
    }

    /// Parses version 2: a block of bytes. Additions after the addresses are skipped.
    private static func block(_ bytes: [UInt8]) -> Outcome {
        guard bytes.count >= 16 else { return .incomplete }
        let (version, command, family) = (bytes[12] >> 4, bytes[12] & 0xF, bytes[13])
        let length = Int(bytes[14]) << 8 | Int(bytes[15])
        guard version == 2, command < 2 else {
            return .malformed("The PROXY header has an unknown version or command.")
        }
        guard length <= maxBlockBytes else {
            return .malformed("The PROXY header is longer than \(maxBytes) bytes.")
        }
        guard bytes.count >= 16 + length else { return .incomplete }
        let address: Int
        switch (command, family) {
        case (0, _): return .complete(length: 16 + length, source: .proxy)
        case (_, 0x00): return .complete(length: 16 + length, source: .unknown)
        case (_, 0x11): address = 4
        case (_, 0x21): address = 16
        case (_, 0x31) where length >= 216: return .complete(length: 16 + length, source: .unknown)
        default: return .malformed("The PROXY header has an address family other than TCP or Unix.")
        }
        guard length >= 2 * address + 4 else { return .malformed("The PROXY header is too short for its addresses.") }
        let source = NetworkAddress(bytes: bytes[16..<(16 + address)]).map(Source.address) ?? .unknown
        return .complete(length: 16 + length, source: source)
    }
}
