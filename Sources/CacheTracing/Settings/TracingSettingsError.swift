/// A configuration error that prevents the start: the variable or key, and the problem with its remedy as a predicate.
/// It never contains a header value.
package struct TracingSettingsError: Error, Hashable, CustomStringConvertible {
    /// The name of an environment variable or of a setting.
    package let key: String
    /// A predicate without subject and period, for example `must begin with http:// or https://`.
    package let problem: String

    package init(_ key: String, _ problem: String) {
        self.key = key
        self.problem = problem
    }

    package var description: String { "\(key): \(problem)" }
}
