import CacheCore

/// Full name of a setting. An origin's name or a tag is one component, even with dots.
struct SettingsPath: Hashable, Sendable {
    /// From the root, for example `origins`, `my.name`, `baseURL`.
    let components: [String]

    init(_ components: [String]) { self.components = components }

    /// Parses a dotted name. `origins.my.name.baseURL` has the components `origins`, `my.name` and `baseURL`.
    ///
    /// The end of an origin's name is the position from which the rest is a known setting or `headers`.
    init(dotted: String) {
        let parts = dotted.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        if parts.starts(with: SettingsSchema.tagQuotas), let key = parts.last, parts.count > 4 {
            let tag = parts[SettingsSchema.tagQuotas.count..<parts.count - 1].joined(separator: ".")
            self.init(SettingsSchema.tagQuotas + [tag, key])
            return
        }
        guard parts.first == "origins", parts.count > 2 else {
            self.init(parts)
            return
        }
        let keys = OriginSettings.settings.map(\.key)
        let start = (2..<parts.count).first { index in
            keys.contains(parts[index...].joined(separator: ".")) || parts[index] == "headers"
        }
        guard let start else {
            self.init(parts)
            return
        }
        self.init(["origins", parts[1..<start].joined(separator: ".")] + parts[start...])
    }

    /// The name as in flags and messages. It is ambiguous for names with dots; the components are not.
    var dotted: String { components.joined(separator: ".") }

    /// The environment variable of the setting, for example `LARDER_POLICY_HIGH_WATERMARK`.
    var variable: String {
        let words = components.map { component in
            let letters = Array(component)
            return letters.indices.reduce(into: "") { text, index in
                let beginsWord = index + 1 < letters.count && letters[index + 1].isLowercase
                // A word begins with a capital after a small letter, and with the last capital of an acronym.
                if letters[index].isUppercase, let last = text.last, last.isLowercase || last.isUppercase && beginsWord
                {
                    text.append("_")
                }
                text.append(letters[index])
            }
        }
        return "LARDER_" + words.joined(separator: "_").uppercased().map { $0.isLetter || $0.isNumber ? $0 : "_" }
    }
}
