/// Parses `Retry-After`, the delay that an error response requests (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// The delay from `now`, at most 2^31 s. A date in the past gives no delay. Nil if the field is absent or is
    /// neither a number nor a date. The first of several fields counts.
    package static func wait(in headers: HeaderList, now: Timestamp) -> Duration? {
        guard let text = headers["Retry-After"].map({ FieldText.trimmed($0[...]) }) else { return nil }
        if let seconds = FieldText.clampedNumber(text.utf8) { return .seconds(min(seconds, CacheControl.maxSeconds)) }
        guard let date = HTTPDate.parse(String(text), now: now) else { return nil }
        return min(max(.zero, date.since(now)), .seconds(CacheControl.maxSeconds))
    }
}
