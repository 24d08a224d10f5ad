/// An IPv4 or IPv6 address. An IPv4-mapped IPv6 address is the IPv4 address.
package struct NetworkAddress: Hashable, Sendable, CustomStringConvertible {
    /// The bits of an IPv6 address, or those of the IPv4-mapped form.
    fileprivate let high, low: UInt64

    private static let mapped: UInt64 = 0xFFFF_0000_0000

    fileprivate init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The address with these 4 or 16 bytes in network order; nil for another number.
    package init?(bytes: some Collection<UInt8>) {
        switch bytes.count {
        case 4: self.init(high: 0, low: Self.mapped | Self.number(bytes))
        case 16: self.init(high: Self.number(bytes.prefix(8)), low: Self.number(bytes.dropFirst(8)))
        default: return nil
        }
    }

    /// The 4 or 16 bytes in network order.
    package var bytes: [UInt8] {
        if high == 0, low >> 32 == 0xFFFF { return (0..<4).map { UInt8(truncatingIfNeeded: low >> (24 - 8 * $0)) } }
        return [high, low].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) } }
    }

    private static func number(_ bytes: some Sequence<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

    /// Parses dotted decimal, or IPv6 text (RFC 4291 §2.2) without brackets and zone; nil if the text is neither.
    package init?(_ text: some StringProtocol) {
        if !text.contains(":") {
            guard let bytes = Self.dotted(text) else { return nil }
            self.init(bytes: bytes)
            return
        }
        guard let words = Self.words(text) else { return nil }
        self.init(bytes: words.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] })
    }

    /// The bytes of dotted decimal: four numbers without leading zeros.
    private static func dotted(_ text: some StringProtocol) -> [UInt8]? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        let bytes = parts.compactMap { part -> UInt8? in
            guard part.utf8.allSatisfy({ (0x30...0x39).contains($0) }), part == "0" || part.first != "0" else {
                return nil
            }
            return UInt8(part)
        }
        return bytes.count == 4 ? bytes : nil
    }

    /// The eight words of an IPv6 text.
    private static func words(_ text: some StringProtocol) -> [UInt16]? {
        guard let gap = text.firstRange(of: "::") else {
            let words = list(text[...])
            return words?.count == 8 ? words : nil
        }
        guard let front = list(text[..<gap.lowerBound]), let back = list(text[gap.upperBound...]) else { return nil }
        let missing = 8 - front.count - back.count
        return missing > 0 ? front + [UInt16](repeating: 0, count: missing) + back : nil
    }

    /// Words that are separated by colons; the last one may be an IPv4 address.
    private static func list(_ text: some StringProtocol) -> [UInt16]? {
        if text.isEmpty { return [] }
        var words: [UInt16] = []
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if index == parts.count - 1, part.contains(".") {
                guard let bytes = dotted(part) else { return nil }
                words += [UInt16(bytes[0]) << 8 | UInt16(bytes[1]), UInt16(bytes[2]) << 8 | UInt16(bytes[3])]
                continue
            }
            guard (1...4).contains(part.utf8.count), !part.hasPrefix("+"), let word = UInt16(part, radix: 16) else {
                return nil
            }
            words.append(word)
        }
        return words
    }

    package var isIPv4: Bool { high == 0 && low >> 32 == 0xFFFF }

    /// The address that limits count: an IPv4 address, or the first 64 bits of an IPv6 address, because one customer of a
    /// network has at least so many.
    package var counted: NetworkAddress { isIPv4 ? self : NetworkAddress(high: high, low: 0) }

    /// Dotted decimal, or the form of RFC 5952.
    package var description: String {
        if isIPv4 {
            let bytes = stride(from: 24, through: 0, by: -8).map { (shift: Int) -> UInt64 in low >> shift & 0xFF }
            return bytes.map { String($0) }.joined(separator: ".")
        }
        let words = [high, low].flatMap { (half: UInt64) in
            stride(from: 48, through: 0, by: -16).map { (shift: Int) -> UInt64 in half >> shift & 0xFFFF }
        }
        // The longest run of at least two zeros, the first of equal ones.
        var best: Range<Int> = 0..<0
        var start = 0
        while start < words.count {
            let end = words[start...].firstIndex { $0 != 0 } ?? words.count
            if end - start > max(1, best.count) { best = start..<end }
            start = end + 1
        }
        let text = { (words: ArraySlice<UInt64>) in words.map { String($0, radix: 16) }.joined(separator: ":") }
        guard !best.isEmpty else { return text(words[...]) }
        return text(words[..<best.lowerBound]) + "::" + text(words[best.upperBound...])
    }
}

/// An address, or all addresses with the same first bits.
package struct NetworkRange: Hashable, Sendable, CustomStringConvertible {
    private let first: NetworkAddress
    private let bits: Int

    /// Parses an address, or an address and the number of its fixed bits, as `10.0.0.0/8`. Nil if the other bits are not
    /// zero.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = NetworkAddress(parts[0]) else { return nil }
        let offset = first.isIPv4 ? 96 : 0
        var bits = 128
        if parts.count == 2 {
            guard (1...3).contains(parts[1].utf8.count), parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let given = Int(parts[1]), given + offset <= 128
            else { return nil }
            bits = given + offset
        }
        self.first = first
        self.bits = bits
        guard contains(first), masked(first) == first else { return nil }
    }

    package func contains(_ address: NetworkAddress) -> Bool { masked(address) == first }

    private func masked(_ address: NetworkAddress) -> NetworkAddress {
        let mask = { (bits: Int) -> UInt64 in bits <= 0 ? 0 : bits >= 64 ? .max : ~(UInt64.max >> UInt64(bits)) }
        return NetworkAddress(high: address.high & mask(bits), low: address.low & mask(bits - 64))
    }

    package var description: String {
        let offset = first.isIPv4 ? 96 : 0
        return bits == 128 ? "\(first)" : "\(first)/\(bits - offset)"
    }
}
