/// Why the service does not start: one setting, by the name its owner wrote, and what is wrong with it.
struct SettingsError: Error, Hashable, CustomStringConvertible {
    let key: String
    let problem: String

    init(_ key: String, _ problem: String) {
        self.key = key
        self.problem = problem
    }

    var description: String { "\(key): \(problem)" }
}
