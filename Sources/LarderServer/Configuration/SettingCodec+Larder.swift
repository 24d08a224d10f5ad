import CacheCore
import Logging

extension SettingCodec<String> {
    /// A path; not checked.
    static var path: SettingCodec { .text("a path", example: "/var/lib/larder") }

    /// A path relative to another configured directory.
    static var insidePath: SettingCodec {
        text("a relative path without . and ..", example: "media.txt").limited(
            name: "a relative path without . and ..", example: "media.txt", where: OriginSettings.isInside(path:))
    }

    /// A header field name (RFC 9110 §5.1).
    static var fieldName: SettingCodec {
        text("a header field's name", example: "User-Agent").limited(
            name: "a header field's name", example: "User-Agent"
        ) { FieldText.isToken($0) && $0 != "*" }
    }

    /// A media type, or all subtypes of a type (RFC 9110 §8.3.1).
    static var mediaType: SettingCodec {
        text("a media type or type/*", example: "video/*").limited(
            name: "a media type or type/*", example: "video/*", where: OriginSettings.StoreRules.isPattern)
    }

    /// `name` or `*.suffix`, each optionally with `:port`; normalised to lower case.
    static var host: SettingCodec {
        SettingCodec(
            name: "a host, *.suffix or host:port", example: "media.example",
            parse: { text in
                let name = text.hasPrefix("*.") ? String(text.dropFirst(2)) : text
                guard ListenAddress(name) != nil || ListenAddress("\(name):1") != nil else { return nil }
                return text.lowercased()
            }, write: { $0 })
    }

    /// The value of the `Origin` field of a browser (RFC 6454 §7), or `*`.
    static var webOrigin: SettingCodec {
        SettingCodec(
            name: "* or scheme://host", example: "https://dashboard.example",
            parse: { text in
                guard text != "*" else { return text }
                let rest = text.drop { $0 != ":" }
                guard rest.hasPrefix("://"), text.first != ":", !rest.dropFirst(3).isEmpty else { return nil }
                return rest.dropFirst(3).contains("/") ? nil : text.lowercased()
            }, write: { $0 })
    }

    /// An http or https URL without user, query and fragment; a trailing slash is removed.
    static var baseURL: SettingCodec {
        SettingCodec(
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

extension SettingCodec<ListenAddress> {
    /// Host and port.
    static var address: SettingCodec {
        SettingCodec(
            name: "a host and a port", example: "127.0.0.1:8080", parse: { ListenAddress($0) },
            write: \.description)
    }
}

extension SettingCodec<AssetID> {
    /// An asset's identifier.
    static var assetID: SettingCodec {
        SettingCodec(
            name: "an asset's id", example: "9f86d081884c7d659a2feaa0c55ad015", parse: { AssetID($0) },
            write: \.description)
    }
}

extension SettingCodec<Duration> {
    /// A positive duration up to the maximum of an HTTP delta-seconds value (RFC 9111 §1.2.2).
    static func lifetime(example: String) -> SettingCodec {
        duration(example: example).limited(name: "a duration up to 2^31 seconds", example: example) {
            $0 <= OriginSettings.maxLifetime
        }
    }
}

extension SettingCodec<Duration?> {
    /// Nil: the response's own directives apply.
    static var staleness: SettingCodec {
        SettingCodec(
            name: "respect or a duration up to 2^31 seconds", example: "1h",
            parse: { text in
                if text == "respect" { return .some(nil) }
                guard let duration = try? DurationText.parse(text) else { return nil }  // the caller reports the text
                return duration <= OriginSettings.maxLifetime ? duration : nil
            },
            write: { duration in duration.map { DurationText.format($0) } ?? "respect" })
    }
}

extension SettingCodec<OriginSettings.Freshness> {
    /// `respect`, `explicit`, or a lifetime.
    static var freshness: SettingCodec {
        let duration = SettingCodec<Duration>.duration(example: "1h")
        return SettingCodec(
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

extension SettingCodec<OriginSettings.KeyQuery> {
    /// `all` or `none`; the lists are settings of their own.
    static var wholeQuery: SettingCodec {
        SettingCodec(
            name: "all, none, or a mapping with include or exclude", example: "none",
            parse: { text in text == "all" ? .all : text == "none" ? OriginSettings.KeyQuery.none : nil },
            write: { $0 == .all ? "all" : "none" })
    }
}
