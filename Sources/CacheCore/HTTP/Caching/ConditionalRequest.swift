/// What a request's preconditions come to (RFC 9110 §13), in the order of §13.2.2.
package enum ConditionalRequest: Hashable, Sendable {
    /// Answer as asked, ranges included.
    case proceed
    /// Answer as asked, but with the whole asset: an `If-Range` does not hold (§13.1.5).
    case proceedWithoutRanges
    /// 304.
    case notModified
    /// 412.
    case failed

    /// Judges GET and HEAD alike, except that `If-Range` is for those with a `Range` only.
    package static func evaluate(_ headers: HeaderList, validators: Validators, now: Timestamp) -> ConditionalRequest {
        if let wanted = headers.combined("If-Match") {
            if !matches(wanted, validators.entityTag, { $0.matchesStrongly($1) }) { return .failed }
        } else if isModified(since: headers.values("If-Unmodified-Since"), validators, now: now) == true {
            return .failed
        }
        if let known = headers.combined("If-None-Match") {
            if matches(known, validators.entityTag, { $0.matchesWeakly($1) }) { return .notModified }
        } else if isModified(since: headers.values("If-Modified-Since"), validators, now: now) == false {
            return .notModified
        }
        guard headers["Range"] != nil, let condition = headers.combined("If-Range") else { return .proceed }
        return holds(ifRange: condition, validators, now: now) ? .proceed : .proceedWithoutRanges
    }

    /// `*`, or a list of tags one of which `isSame` as the asset's.
    private static func matches(
        _ list: String, _ tag: EntityTag?, _ isSame: (EntityTag, EntityTag) -> Bool
    ) -> Bool {
        if FieldText.trimmed(list[...]) == "*" { return true }
        guard let tag else { return false }
        var list = list
        return list.withUTF8 { bytes in
            FieldText.hasMember(bytes, escapes: false) { EntityTag(bytes: $0).map { isSame($0, tag) } ?? false }
        }
    }

    /// Whether the asset is younger than the date; nil where the condition is to be ignored: absent, not exactly one
    /// date (§13.1.3, §13.1.4), or an asset without a date.
    private static func isModified(since dates: [String], _ validators: Validators, now: Timestamp) -> Bool? {
        guard dates.count == 1, let since = HTTPDate.parse(dates[0], now: now),
            let modified = validators.lastModified.flatMap({ HTTPDate.parse($0, now: now) })
        else { return nil }
        return modified > since
    }

    /// Strong comparison of tags; a date must be the asset's own, to the letter or the second, and a strong one.
    private static func holds(ifRange condition: String, _ validators: Validators, now: Timestamp) -> Bool {
        let condition = FieldText.trimmed(condition[...])
        if let wanted = EntityTag(condition) { return validators.entityTag?.matchesStrongly(wanted) ?? false }
        guard validators.lastModifiedIsStrong, let modified = validators.lastModified else { return false }
        if condition == modified { return true }
        guard let wanted = HTTPDate.parse(String(condition), now: now) else { return false }
        return wanted == HTTPDate.parse(modified, now: now)
    }
}
