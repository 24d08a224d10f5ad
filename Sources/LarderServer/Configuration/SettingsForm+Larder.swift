import CacheCore
import Logging

extension SettingsForm<String> {
    static var path: SettingsForm { .text("a path", example: "/var/lib/larder") }

    /// A path below a directory that is configured elsewhere.
    static var insidePath: SettingsForm {
        text("a relative path without . and ..", example: "media.txt").limited(
            name: "a relative path without . and ..", example: "media.txt", where: OriginSettings.isInside(path:))
    }

    /// A header field's name (RFC 9110 §5.1).
    static var fieldName: SettingsForm {
        text("a header field's name", example: "User-Agent").limited(
            name: "a header field's name", example: "User-Agent"
        ) { FieldText.isToken($0) && $0 != "*" }
    }

    /// A media type, or all of one kind (RFC 9110 §8.3.1).
    static var mediaType: SettingsForm {
        text("a media type or type/*", example: "video/*").limited(
            name: "a media type or type/*", example: "video/*", where: OriginSettings.StoreRules.isPattern)
    }

    /// `name`, `*.suffix`, either with `:port`; written in lower case.
    static var host: SettingsForm {
        SettingsForm(
            name: "a host, *.suffix or host:port", example: "media.example",
            parse: { text in
                let name = text.hasPrefix("*.") ? String(text.dropFirst(2)) : text
                guard ListenAddress(name) != nil || ListenAddress("\(name):1") != nil else { return nil }
                return text.lowercased()
            }, write: { $0 })
    }

    /// What a browser sends as `Origin` (RFC 6454 §7), or `*`.
    static var webOrigin: SettingsForm {
        SettingsForm(
            name: "* or scheme://host", example: "https://dashboard.example",
            parse: { text in
                guard text != "*" else { return text }
                let rest = text.drop { $0 != ":" }
                guard rest.hasPrefix("://"), text.first != ":", !rest.dropFirst(3).isEmpty else { return nil }
                return rest.dropFirst(3).contains("/") ? nil : text.lowercased()
            }, write: { $0 })
    }

    /// An http or https URL without user, query and fragment; a slash at its end is left out.
    static var baseURL: SettingsForm {
        SettingsForm(
            name: "an http or https URL without user, query and fragment", example: "https://media.example/library",
            parse: { text in
                let scheme = ["http://", "https://"].first { text.lowercased().hasPrefix($0) }
                guard let scheme else { return nil }
                let rest = text.dropFirst(scheme.count)
                let authority = rest.prefix { $0 != "/" }
                guard ListenAddress(String(authority)) != nil || ListenAddress("\(authority):1") != nil,
                    !rest.contains(where: { "@?# \t\\".contains($0) })
                else { return nil }
                return scheme + (rest.last == "/" ? rest.dropLast() : rest)
            }, write: { $0 })
    }
}

extension SettingsForm<ListenAddress> {
    static var address: SettingsForm {
        SettingsForm(
            name: "a host and a port", example: "127.0.0.1:8080", parse: { ListenAddress($0) },
            write: \.description)
    }
}

extension SettingsForm<AssetID> {
    static var assetID: SettingsForm {
        SettingsForm(
            name: "an asset's id", example: "9f86d081884c7d659a2feaa0c55ad015", parse: { AssetID($0) },
            write: \.description)
    }
}

extension SettingsForm<Duration> {
    /// A duration longer than nothing that HTTP can say (RFC 9111 §1.2.2).
    static func lifetime(example: String) -> SettingsForm {
        duration(example: example).limited(name: "a duration up to 2^31 seconds", example: example) {
            $0 <= OriginSettings.maxLifetime
        }
    }
}

extension SettingsForm<Duration?> {
    /// Nil where the response says it itself.
    static var staleness: SettingsForm {
        SettingsForm(
            name: "respect or a duration up to 2^31 seconds", example: "1h",
            parse: { text in
                if text == "respect" { return .some(nil) }
                guard let duration = try? DurationText.parse(text) else { return nil }  // nil is the whole answer
                return duration <= OriginSettings.maxLifetime ? duration : nil
            },
            write: { duration in duration.map { DurationText.format($0) } ?? "respect" })
    }
}

extension SettingsForm<OriginSettings.Freshness> {
    static var freshness: SettingsForm {
        let duration = SettingsForm<Duration>.duration(example: "1h")
        return SettingsForm(
            name: "respect, explicit or a duration", example: "1h",
            parse: { text in
                switch text {
                case "respect": .respect
                case "explicit": .explicit
                default: duration.parse(text).map { .ttl($0) }
                }
            },
            write: { freshness in
                switch freshness {
                case .respect: "respect"
                case .explicit: "explicit"
                case .ttl(let length): duration.write(length)
                }
            })
    }
}

extension SettingsForm<OriginSettings.KeyQuery> {
    /// `all` or `none`; the lists are settings of their own.
    static var wholeQuery: SettingsForm {
        SettingsForm(
            name: "all, none, or a mapping with include or exclude", example: "none",
            parse: { text in text == "all" ? .all : text == "none" ? OriginSettings.KeyQuery.none : nil },
            write: { $0 == .all ? "all" : "none" })
    }
}
