/// Decides to which addresses the service may connect when it fetches URLs for clients: public unicast ones only
/// (protection against server-side request forgery).
///
/// The tables contain the IANA special-purpose address registries (RFC 6890). Forms of IPv6 addresses that embed an
/// IPv4 address are judged by the embedded address.
package enum AddressGuard {
    /// The reason why `address` (4 or 16 bytes in network order) is refused, as the name of its kind; nil if it
    /// is public.
    package static func refusal(of address: [UInt8]) -> String? {
        switch address.count {
        case 4: refusal(ofIPv4: address[...])
        case 16: refusal(ofIPv6: address)
        default: "unknown"
        }
    }

    /// Whether addresses of the kind that `refusal` returned stay refused where private ones are allowed. These are the
    /// metadata services of clouds, which return the machine's credentials, link-local addresses, and addresses that no
    /// server can have.
    package static func isNeverAllowed(_ kind: String) -> Bool {
        [metadata, "link-local", "multicast", "unspecified"].contains { kind.hasSuffix($0) }
    }

    /// Whether addresses of the kind that `refusal` returned can be those of a metadata service or of a container's
    /// credential service (link-local, loopback, unique local). Embedded forms are not.
    package static func isMetadataService(_ kind: String) -> Bool {
        [metadata, "link-local", "loopback", "private"].contains(kind)
    }

    private static let metadata = "cloud metadata service"

    /// An address block: a prefix of `bits` bits and the name of its kind.
    private struct Block {
        let prefix: [UInt8]
        let bits: Int
        let kind: String

        init(_ prefix: [UInt8], _ bits: Int, _ kind: String) {
            self.prefix = prefix
            self.bits = bits
            self.kind = kind
        }

        /// Whether the first `bits` bits of `address` equal the prefix; bytes that the prefix omits are zero.
        func contains(_ address: ArraySlice<UInt8>) -> Bool {
            for (index, byte) in address.enumerated() {
                let left = bits - index * 8
                guard left > 0 else { return true }
                let mask: UInt8 = left >= 8 ? 0xFF : ~(0xFF >> UInt8(left))
                let wanted = index < prefix.count ? prefix[index] : 0
                if byte & mask != wanted & mask { return false }
            }
            return true
        }
    }

    private static let blocksIPv4 = [
        // The metadata services of Alibaba Cloud and Azure; other clouds use 169.254.169.254.
        Block([100, 100, 100, 200], 32, metadata), Block([168, 63, 129, 16], 32, metadata),
        Block([0], 8, "unspecified"), Block([10], 8, "private"), Block([100, 64], 10, "shared (CGNAT)"),
        Block([127], 8, "loopback"), Block([169, 254], 16, "link-local"), Block([172, 16], 12, "private"),
        Block([192, 0, 0], 24, "reserved"), Block([192, 0, 2], 24, "documentation"),
        Block([192, 88, 99], 24, "reserved"), Block([192, 168], 16, "private"),
        Block([198, 18], 15, "benchmarking"), Block([198, 51, 100], 24, "documentation"),
        Block([203, 0, 113], 24, "documentation"), Block([224], 4, "multicast"), Block([240], 4, "reserved"),
    ]

    /// Blocks inside 2000::/3, and well-known blocks outside it.
    private static let blocksIPv6 = [
        // The metadata services of AWS and Google Cloud.
        Block([0xFD, 0x00, 0x0E, 0xC2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54], 128, metadata),
        Block([0xFD, 0x20, 0x00, 0xCE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54], 128, metadata),
        Block([], 128, "unspecified"), Block([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], 128, "loopback"),
        localNAT64, Block([0x01], 64, "discard-only"),
        Block([0x20, 0x01, 0x00, 0x02], 48, "benchmarking"), Block([0x20, 0x01, 0x00, 0x10], 28, "ORCHID"),
        Block([0x20, 0x01, 0x00, 0x20], 28, "ORCHID"), Block([0x20, 0x01, 0x0D, 0xB8], 32, "documentation"),
        Block([0x3F, 0xFF], 20, "documentation"), Block([0xFC], 7, "private"), Block([0xFE, 0x80], 10, "link-local"),
        Block([0xFE, 0xC0], 10, "private"), Block([0xFF], 8, "multicast"),
    ]

    private static let globalUnicast = Block([0x20], 3, "global")

    private static func refusal(ofIPv4 address: ArraySlice<UInt8>) -> String? {
        blocksIPv4.first { $0.contains(address) }?.kind
    }

    private static func refusal(ofIPv6 address: [UInt8]) -> String? {
        // An embedded metadata service or link-local address is refused first, whatever else the address is.
        for (form, inner) in possiblyEmbedded(in: address) {
            if let kind = refusal(ofIPv4: inner), [metadata, "link-local"].contains(kind) {
                return "\(form) of a \(kind)"
            }
        }
        if let block = blocksIPv6.first(where: { $0.contains(address[...]) }) { return block.kind }
        let inside = embedded(in: address)
        for inner in inside.addresses {
            if let kind = refusal(ofIPv4: inner) { return "\(inside.form) of a \(kind)" }
        }
        if !inside.addresses.isEmpty { return nil }
        return globalUnicast.contains(address[...]) ? nil : "reserved"
    }

    /// The IPv4 addresses that a network could extract from an IPv6 address. In addition to those of `embedded`, they
    /// come from the local-use NAT64 prefix (RFC 8215, as a /96 and as a /48 according to RFC 6052 §2.2) and from
    /// ISATAP under any prefix.
    private static func possiblyEmbedded(in address: [UInt8]) -> [(form: String, address: ArraySlice<UInt8>)] {
        let (form, addresses) = embedded(in: address)
        var inner = addresses.map { (form, $0) }
        if localNAT64.contains(address[...]) {
            inner += [address[12...], (address[6..<8] + address[9..<11])[...]].map { (localNAT64.kind, $0) }
        }
        if isISATAP(address) { inner.append(("ISATAP", address[12...])) }
        return inner
    }

    /// Whether the interface identifier is that of ISATAP (RFC 5214 §6.1).
    private static func isISATAP(_ address: [UInt8]) -> Bool {
        address[8] & 0xFD == 0 && address[9] == 0 && address[10] == 0x5E && address[11] == 0xFE
    }

    private static let localNAT64 = Block([0x00, 0x64, 0xFF, 0x9B, 0x00, 0x01], 48, "local NAT64")
    private static let mapped = Block([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], 96, "IPv4-mapped")
    private static let translated = Block([0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0], 96, "IPv4-translated")
    private static let compatible = Block([], 96, "IPv4-compatible")
    private static let nat64 = Block([0x00, 0x64, 0xFF, 0x9B], 96, "NAT64")
    private static let sixToFour = Block([0x20, 0x02], 16, "6to4")
    private static let teredo = Block([0x20, 0x01, 0x00, 0x00], 32, "Teredo")

    /// The IPv4 addresses embedded in an IPv6 address, and the name of the form (RFC 4291 §2.5.5, 6052, 3056, 4380,
    /// 5214).
    private static func embedded(in address: [UInt8]) -> (form: String, addresses: [ArraySlice<UInt8>]) {
        for block in [mapped, translated, compatible, nat64] where block.contains(address[...]) {
            return (block.kind, [address[12...]])
        }
        if sixToFour.contains(address[...]) { return (sixToFour.kind, [address[2..<6]]) }
        if teredo.contains(address[...]) {  // the server's address, and the client's with inverted bits
            return (teredo.kind, [address[4..<8], address[12...].map { ~$0 }[...]])
        }
        if isISATAP(address), globalUnicast.contains(address[...]) { return ("ISATAP", [address[12...]]) }
        return ("", [])
    }
}
