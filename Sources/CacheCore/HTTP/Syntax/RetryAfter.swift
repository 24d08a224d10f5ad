/// How long a refusing response wants to be left alone (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// The field's wait, counted from `now`: seconds as they stand, at most 2^31; a date that has passed is no wait at
    /// all. Nil where the field is absent, or neither a number nor a date. Of several fields the first counts.
    package static func wait(in headers: HeaderList, now: Timestamp) -> Duration? {
        guard let text = headers["Retry-After"].map({ FieldText.trimmed($0[...]) }) else { return nil }
        if let seconds = FieldText.clampedNumber(text.utf8) { return .seconds(min(seconds, CacheControl.maxSeconds)) }
        guard let date = HTTPDate.parse(String(text), now: now) else { return nil }
        return min(max(.zero, date.since(now)), .seconds(CacheControl.maxSeconds))
    }
}
