import CacheAPI
import CacheCore

extension SettingCodec<String> {
    /// `name` or `*.suffix`, each optionally with `:port`; normalised to lower case.
    static var host: SettingCodec {
        SettingCodec(
            "a host, *.suffix or host:port", example: "media.example",
            parse: { text in
                let name = text.hasPrefix("*.") ? String(text.dropFirst(2)) : text
                guard case .host = ListenAddress(name) ?? ListenAddress("\(name):1") else { return nil }
                return text.lowercased()
            }, write: { $0 })
    }

    /// The URL of an OTLP/HTTP receiver. Its parts are checked when tracing starts.
    static var receiverURL: SettingCodec {
        SettingCodec(
            "an http or https URL", example: "http://127.0.0.1:4318/v1/traces",
            parse: { $0.hasPrefix("http://") || $0.hasPrefix("https://") ? $0 : nil }, write: { $0 })
    }

    /// The base URL of a node, written without a slash at the end.
    static var nodeURL: SettingCodec {
        SettingCodec(
            "an http or https URL without a path", example: "http://10.0.0.12:8080",
            parse: { text in
                let url = text.hasSuffix("/") ? String(text.dropLast()) : text
                guard let scheme = ["http://", "https://"].first(where: url.hasPrefix) else { return nil }
                let host = url.dropFirst(scheme.count)
                let isHost = host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/?#@".utf8.contains($0) }
                return isHost && !host.isEmpty ? url : nil
            }, write: { $0 })
    }

    /// A name that is part of a key of etcd.
    static var fleetName: SettingCodec {
        SettingCodec(
            "1 to 64 letters, digits, `.`, `_` and `-`", example: "larder-1",
            parse: { text in
                let isName = text.utf8.allSatisfy { byte in
                    FieldText.isDigit(byte) || ".-_".utf8.contains(byte) || (byte | 32 >= 97 && byte | 32 <= 122)
                }
                return isName && (1...64).contains(text.utf8.count) ? text : nil
            }, write: { $0 })
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
    /// Host and port, or the path of a Unix socket.
    static var address: SettingCodec {
        SettingCodec(
            "a host and a port, or unix: and an absolute path of at most \(UnixSocketFile.maxPathBytes) bytes",
            example: "127.0.0.1:8080", parse: { ListenAddress($0) }, write: \.description)
    }
}

extension SettingCodec<NetworkRange> {
    /// An address, or a network as an address and the number of its fixed bits.
    static var network: SettingCodec {
        SettingCodec(
            "an IP address, or a network such as 10.0.0.0/8 without further bits", example: "10.0.0.0/8",
            parse: { NetworkRange($0) }, write: \.description)
    }
}

extension SettingCodec<UInt32> {
    /// The permissions of a file in octal digits.
    static var fileMode: SettingCodec {
        SettingCodec(
            "an octal file mode such as 0660", example: "0660",
            parse: { text in
                guard (3...4).contains(text.utf8.count), let mode = UInt32(text, radix: 8), mode <= 0o777 else {
                    return nil
                }
                return mode
            },
            write: { mode in
                let digits = String(mode, radix: 8)
                return String(repeating: "0", count: 4 - digits.count) + digits
            })
    }
}
