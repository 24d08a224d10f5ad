extension RangeHeader {
    /// Fast path for the common form: one `range-spec` after `bytes=`, without whitespace. Returns its range in an
    /// asset of `length` bytes.
    ///
    /// Nil does not mean that the field is invalid or unsatisfiable: ``parse(_:)`` accepts all valid forms.
    package static func single(_ text: UnsafeRawBufferPointer, length: Int64) -> ByteRange? {
        let unit: StaticString = "bytes="
        guard text.count > unit.utf8CodeUnitCount, length > 0 else { return nil }
        for index in 0..<unit.utf8CodeUnitCount where text[index] != unit.utf8Start[index] { return nil }
        var index = unit.utf8CodeUnitCount
        let first = number(text, &index)
        guard index < text.count, text[index] == UInt8(ascii: "-") else { return nil }
        index += 1
        let last = number(text, &index)
        guard index == text.count else { return nil }
        switch (first, last) {
        case (let first?, let last?):
            guard first <= last, first < length else { return nil }
            return first..<min(last, length - 1) + 1
        case (let first?, nil): return first < length ? first..<length : nil
        case (nil, let count?): return count > 0 ? max(0, length - count)..<length : nil
        case (nil, nil): return nil
        }
    }

    /// Parses up to 18 digits, which fit an `Int64`. Nil without a digit; the caller rejects further digits.
    private static func number(_ text: UnsafeRawBufferPointer, _ index: inout Int) -> Int64? {
        let start = index
        var value: Int64 = 0
        while index < text.count, index - start < 18, case let digit = text[index] &- UInt8(ascii: "0"), digit < 10 {
            value = value * 10 + Int64(digit)
            index += 1
        }
        return index > start ? value : nil
    }
}
