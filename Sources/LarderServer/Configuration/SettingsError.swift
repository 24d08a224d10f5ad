/// A configuration error that prevents the start: the key as the user wrote it, and the problem as a predicate.
struct SettingsError: Error, Hashable, CustomStringConvertible {
    /// Dotted name of a setting, a file path, or an option such as `--set`.
    let key: String
    /// A predicate without subject and period, for example `is empty`.
    let problem: String

    init(_ key: String, _ problem: String) {
        self.key = key
        self.problem = problem
    }

    var description: String { "\(key): \(problem)" }
}
