import CacheCore

extension SettingCodec<String> {
    /// `name` or `*.suffix`, each optionally with `:port`; normalised to lower case.
    static var host: SettingCodec {
        SettingCodec(
            "a host, *.suffix or host:port", example: "media.example",
            parse: { text in
                let name = text.hasPrefix("*.") ? String(text.dropFirst(2)) : text
                guard ListenAddress(name) != nil || ListenAddress("\(name):1") != nil else { return nil }
                return text.lowercased()
            }, write: { $0 })
    }

    /// The URL of an OTLP/HTTP receiver. Its parts are checked when tracing starts.
    static var receiverURL: SettingCodec {
        SettingCodec(
            "an http or https URL", example: "http://127.0.0.1:4318/v1/traces",
            parse: { $0.hasPrefix("http://") || $0.hasPrefix("https://") ? $0 : nil }, write: { $0 })
    }

    /// The URL of a JWK set.
    static var keySetURL: SettingCodec {
        SettingCodec(
            "an http or https URL", example: "https://login.example/.well-known/jwks.json",
            parse: { $0.hasPrefix("http://") || $0.hasPrefix("https://") ? $0 : nil }, write: { $0 })
    }

    /// A text of one line that is not empty.
    static var line: SettingCodec {
        SettingCodec(
            "a text", example: "larder",
            parse: { $0.isEmpty || $0.utf8.contains(where: { $0 < 0x20 }) ? nil : $0 }, write: { $0 })
    }

    /// The value of the `Origin` field of a browser (RFC 6454 §7), or `*`.
    static var webOrigin: SettingCodec {
        SettingCodec(
            "* or scheme://host", example: "https://dashboard.example",
            parse: { text in
                guard text != "*" else { return text }
                let rest = text.drop { $0 != ":" }
                guard rest.hasPrefix("://"), text.first != ":", !rest.dropFirst(3).isEmpty else { return nil }
                return rest.dropFirst(3).contains("/") ? nil : text.lowercased()
            }, write: { $0 })
    }
}

extension SettingCodec<ListenAddress> {
    /// Host and port.
    static var address: SettingCodec {
        SettingCodec(
            "a host and a port", example: "127.0.0.1:8080", parse: { ListenAddress($0) },
            write: \.description)
    }
}
