/// The index pages of web servers. Each link is an entry; the size and the date are read from the text behind it, as nginx
/// and Apache write them. Rounded sizes (`1.2M`) are not stated.
enum HTMLIndex {
    static func entries(_ text: [UInt8], now: Timestamp) -> [ListingEntry] {
        var entries: [ListingEntry] = []
        var rest = text[...]
        while entries.count <= Listing.entryLimit, let tag = nextLink(&rest) {
            guard let href = attribute("href", in: tag) else { continue }
            let reference = PercentEncoding.valid(query: unescaped(href))
            guard let first = reference.utf8.first, first != UInt8(ascii: "?"), first != UInt8(ascii: "#") else {
                continue
            }
            // The text up to the next link, without tags, states date and size; the name of the link comes first.
            let end = next("<a ", in: rest) ?? rest.endIndex
            let (time, bytes) = details(of: rest[..<end].prefix(2048))
            let isFolder = reference.hasSuffix("/")
            entries.append(
                ListingEntry(
                    reference: reference, bytes: isFolder ? nil : bytes, modifiedAt: time, isFolder: isFolder))
        }
        return entries
    }

    /// Consumes the text up to the end of the next start tag `<a …>`, and returns its attributes.
    private static func nextLink(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let start = next("<a ", in: rest), let end = rest[start...].firstIndex(of: UInt8(ascii: ">")) else {
            return nil
        }
        let tag = rest[(start + 2)..<end]
        rest = rest[(end + 1)...]
        return tag
    }

    /// The index of the next occurrence; letters match in both cases.
    private static func next(_ text: StaticString, in bytes: ArraySlice<UInt8>) -> Int? {
        text.withUTF8Buffer { wanted in
            var rest = bytes
            while let index = rest.firstIndex(of: wanted[0]) {
                let found = bytes[index...].prefix(wanted.count)
                if found.count == wanted.count, zip(found, wanted).allSatisfy({ $0 == $1 || $0 | 0x20 == $1 }) {
                    return index
                }
                rest = bytes[(index + 1)...]
            }
            return nil
        }
    }

    /// The value of an attribute: in quotes, or up to the next white space.
    private static func attribute(_ name: StaticString, in tag: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let index = next(name, in: tag) else { return nil }
        var rest = tag[(index + name.utf8CodeUnitCount)...].drop(while: FieldText.isSpace)
        guard rest.popFirst() == UInt8(ascii: "=") else { return nil }
        rest = rest.drop(while: FieldText.isSpace)
        guard let quote = rest.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
            return rest.prefix { !FieldText.isSpace($0) }
        }
        return rest.dropFirst().prefix { $0 != quote }
    }

    /// The text with the character references that servers write in links.
    private static func unescaped(_ text: ArraySlice<UInt8>) -> String {
        String(decoding: text, as: UTF8.self)
            .replacing("&lt;", with: "<").replacing("&gt;", with: ">").replacing("&quot;", with: "\"")
            .replacing("&#39;", with: "'").replacing("&#34;", with: "\"").replacing("&amp;", with: "&")
    }

    /// The date (UTC, exact to the minute) and the exact size in the text behind a link: `28-Nov-2026 10:00` (nginx), or
    /// `2026-11-28 10:00` (Apache), then digits.
    private static func details(of text: ArraySlice<UInt8>) -> (time: Timestamp?, bytes: Int64?) {
        let words = words(of: text)
        for (index, word) in words.enumerated().dropLast() {
            guard let day = date(word), let time = minutes(words[index + 1]) else { continue }
            let size = words.dropFirst(index + 2).first.flatMap { FieldText.byteCount($0.utf8) }
            return (Timestamp(seconds: day + time), size)
        }
        return (nil, nil)
    }

    /// The words outside of tags.
    private static func words(of text: ArraySlice<UInt8>) -> [Substring] {
        var (plain, isTag): ([UInt8], Bool) = ([], false)
        for byte in text {
            switch byte {
            case UInt8(ascii: "<"):
                isTag = true
                plain.append(0x20)
            case UInt8(ascii: ">"): isTag = false
            default: if !isTag { plain.append(byte) }
            }
        }
        return String(decoding: plain, as: UTF8.self).split(whereSeparator: \.isWhitespace)
    }

    /// The seconds since 1970 of a day.
    private static func date(_ word: Substring) -> Int64? {
        let parts = word.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        if parts[0].utf8.count == 4 { return RFC3339.parse(word + "T00:00:00Z")?.seconds }
        guard let month = HTTPDate.months.firstIndex(of: String(parts[1])) else { return nil }
        return RFC3339.parse("\(parts[2])-\(FieldText.padded(month + 1, 2))-\(parts[0])T00:00:00Z")?.seconds
    }

    /// The seconds of a time such as `10:00`.
    private static func minutes(_ word: Substring) -> Int64? {
        let parts = word.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ $0.utf8.count == 2 }), let hour = FieldText.number(parts[0].utf8),
            let minute = FieldText.number(parts[1].utf8), hour < 24, minute < 60
        else { return nil }
        return hour * 3600 + minute * 60
    }
}
