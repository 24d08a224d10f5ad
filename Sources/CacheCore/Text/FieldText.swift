/// Syntax of header fields (RFC 9110 §5): tokens, values, lists and numbers.
package enum FieldText {
    /// Whether `text` is a `token` (§5.6.2), the syntax of field names and directive names.
    package static func isToken(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy(isTokenByte)
    }

    /// Whether `text` is a valid field value (§5.5): no control character except the tab, no blank at either end.
    package static func isValue(_ text: some StringProtocol) -> Bool {
        var last: UInt8?
        for byte in text.utf8 {
            guard byte == 0x09 || (byte >= 0x20 && byte != 0x7F), last != nil || !isBlank(byte) else { return false }
            last = byte
        }
        return !(last.map(isBlank) ?? false)
    }

    /// `text` without leading and trailing blanks and tabs.
    package static func trimmed(_ text: Substring) -> Substring {
        Substring(text.utf8.trimmed(isBlank))
    }

    /// The members of a comma-separated list, trimmed and without empty ones (§5.6.1.2). Commas in quotes do not
    /// separate.
    ///
    /// `escapes`: whether a backslash in quotes escapes the next byte, as in a `quoted-string`. Entity tags have no
    /// escapes.
    package static func members(of list: String, escapes: Bool = true) -> [Substring] {
        var (list, places): (String, [Range<Int>]) = (list, [])
        _ = list.withUTF8 { bytes in
            hasMember(bytes, escapes: escapes) { member in
                places.append(member.startIndex..<member.endIndex)
                return false
            }
        }
        let bytes = list.utf8
        return places.map { place in
            let first = bytes.index(bytes.startIndex, offsetBy: place.lowerBound)
            return list[first..<bytes.index(first, offsetBy: place.count)]
        }
    }

    /// Whether the list has a member for which `isWanted` is true; later members are not checked. Separation as in
    /// `members`.
    static func hasMember(
        _ list: UnsafeBufferPointer<UInt8>, escapes: Bool, where isWanted: (Slice<UnsafeBufferPointer<UInt8>>) -> Bool
    ) -> Bool {
        var (start, isQuoted, isEscaped) = (0, false, false)
        func isFound(upTo end: Int) -> Bool {
            let member = trimmed(list[start..<end])
            return !member.isEmpty && isWanted(member)
        }
        for place in list.indices {
            let byte = list[place]
            if isEscaped {
                isEscaped = false
            } else if isQuoted && escapes && byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isQuoted.toggle()
            } else if byte == UInt8(ascii: ",") && !isQuoted {
                if isFound(upTo: place) { return true }
                start = place + 1
            }
        }
        return isFound(upTo: list.count)
    }

    /// `bytes` without leading and trailing blanks and tabs.
    static func trimmed(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Slice<UnsafeBufferPointer<UInt8>> {
        bytes.trimmed(isBlank)
    }

    /// Parses decimal digits; `Int64.max` if the number is larger. Nil if `digits` is empty or contains another byte.
    package static func clampedNumber(_ digits: some Sequence<UInt8>) -> Int64? {
        var value: Int64 = 0
        var isEmpty = true
        for byte in digits {
            guard isDigit(byte) else { return nil }
            isEmpty = false
            let (tens, high) = value.multipliedReportingOverflow(by: 10)
            let (sum, low) = tens.addingReportingOverflow(Int64(byte - 48))
            value = high || low ? Int64.max : sum
        }
        return isEmpty ? nil : value
    }

    /// Parses decimal digits. Nil if `digits` is empty or contains another byte, or if the number is not below
    /// `Int64.max`.
    package static func number(_ digits: some Sequence<UInt8>) -> Int64? {
        clampedNumber(digits).flatMap { $0 == Int64.max ? nil : $0 }
    }

    /// Parses a byte count or an offset; nil also from 2^53 on, so that sums of such numbers cannot overflow. No file
    /// system supports files of that size.
    package static func byteCount(_ digits: some Sequence<UInt8>) -> Int64? {
        number(digits).flatMap { $0 < 1 << 53 ? $0 : nil }
    }

    /// `value` in decimal, padded with leading zeros to `width`.
    package static func padded(_ value: some BinaryInteger, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    /// Whether the byte is a blank, a tab, or part of a line break: white space of ASCII (`isspace` in the C locale).
    package static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

    /// Whether the byte is one of `0`–`9`.
    package static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

    /// Whether the byte is one of `A`–`Z`, `a`–`z`.
    package static func isLetter(_ byte: UInt8) -> Bool { (97...122).contains(byte | 0x20) }

    /// Whether the byte is one of `A`–`Z`, `a`–`z`, `0`–`9`, `-`, `_`, as in base64url (RFC 4648 §5).
    package static func isBase64URL(_ byte: UInt8) -> Bool {
        isLetter(byte) || isDigit(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }

    /// Whether the byte is a space or a tab.
    package static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// `text` with ASCII letters in lower case and all other bytes unchanged.
    package static func lowered(_ text: some StringProtocol) -> String {
        var text = String(text)
        return text.withUTF8 { bytes in
            String(unsafeUninitializedCapacity: bytes.count) { lowered in
                for (index, byte) in bytes.enumerated() {
                    lowered.initializeElement(at: index, to: (65...90).contains(byte) ? byte | 0x20 : byte)
                }
                return bytes.count
            }
        }
    }

    /// Whether the byte is a `tchar` (RFC 9110 §5.6.2).
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        if isLetter(byte) || isDigit(byte) { return true }
        switch byte {
        case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: return true
        default: return false
        }
    }
}

extension BidirectionalCollection<UInt8> {
    /// The bytes without those at both ends that are `unwanted`.
    package func trimmed(_ unwanted: (UInt8) -> Bool) -> SubSequence {
        let rest = drop(while: unwanted)
        let end = rest.lastIndex { !unwanted($0) }.map(rest.index(after:)) ?? rest.startIndex
        return rest[..<end]
    }
}

extension FieldText {
    /// Whether a text can be the name of a queue or of a schedule: 1 to 64 of the characters A–Z, a–z, 0–9, `.`, `_`, `-`.
    package static func isName(_ text: String) -> Bool {
        let marks = ".-_".utf8
        return (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { isLetter($0) || isDigit($0) || marks.contains($0) }
    }
}
