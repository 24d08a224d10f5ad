/// Byte counts as text with a unit: `20GiB`, `512KiB`, `10MB`, `123`.
package enum ByteSize {
    /// Binary units first, each group in descending order.
    private static let units: [(name: String, bytes: Int64)] = [
        ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("TB", 1_000_000_000_000),
        ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000), ("B", 1),
    ]

    /// Parses a whole number with an optional unit, in upper or lower case. Throws `.invalidField(field)`.
    package static func parse(_ text: String, field: String = "bytes") throws(CacheError) -> Int64 {
        let digits = text.utf8.prefix(while: FieldText.isDigit)
        // No unit has more characters.
        let unit = FieldText.lowered(text[digits.endIndex...].prefix(4))
        guard let count = FieldText.number(digits),
            let factor = unit.isEmpty ? 1 : units.first(where: { FieldText.lowered($0.name) == unit })?.bytes
        else { throw .invalid(field, "\(field) must be a size such as 20GiB, 512KiB, 10MB or 123.") }
        let (bytes, overflow) = count.multipliedReportingOverflow(by: factor)
        guard !overflow else { throw .invalid(field, "\(field) must be less than 8 EiB.") }
        return bytes
    }

    /// The shortest exact text: in the largest binary unit that divides the count, otherwise in bytes without a unit.
    package static func format(_ bytes: Int64) -> String {
        let unit = units.prefix(4).first { bytes != 0 && bytes % $0.bytes == 0 }
        return unit.map { "\(bytes / $0.bytes)\($0.name)" } ?? String(bytes)
    }
}
