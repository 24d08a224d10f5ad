/// The result of evaluating the preconditions of a request (RFC 9110 §13), in the order of §13.2.2.
package enum ConditionalRequest: Hashable, Sendable {
    /// Respond as requested, including ranges.
    case proceed
    /// Respond with the whole asset: the `If-Range` condition is false (§13.1.5).
    case proceedWithoutRanges
    /// Respond with 304: the client's copy is current.
    case notModified
    /// Respond with 412: an `If-Match` or `If-Unmodified-Since` condition is false.
    case failed

    /// Evaluates the preconditions of GET and HEAD. `If-Range` applies only to a request with `Range`.
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

    /// Whether the list is `*` or has a tag that `isSame` accepts as the tag of the asset.
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

    /// Whether the asset was modified after the date. Nil if the condition must be ignored: it is absent, is not
    /// exactly one date (§13.1.3, §13.1.4), or the asset has no date.
    private static func isModified(since dates: [String], _ validators: Validators, now: Timestamp) -> Bool? {
        guard dates.count == 1, let since = HTTPDate.parse(dates[0], now: now),
            let modified = validators.lastModified.flatMap({ HTTPDate.parse($0, now: now) })
        else { return nil }
        return modified > since
    }

    /// Whether an `If-Range` holds. A tag must match strongly. A date must be strong and equal to that of the asset, as
    /// text or as a second.
    private static func holds(ifRange condition: String, _ validators: Validators, now: Timestamp) -> Bool {
        let condition = FieldText.trimmed(condition[...])
        if let wanted = EntityTag(condition) { return validators.entityTag?.matchesStrongly(wanted) ?? false }
        guard validators.lastModifiedIsStrong, let modified = validators.lastModified else { return false }
        if condition == modified { return true }
        guard let wanted = HTTPDate.parse(String(condition), now: now) else { return false }
        return wanted == HTTPDate.parse(modified, now: now)
    }
}
