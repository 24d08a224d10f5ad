/// Determines media types by file extension, and uniform type identifiers for AVFoundation.
package enum MediaType {
    /// The media type under which an asset is served: that of the `Content-Type` field, otherwise that of the path's
    /// extension. `from` states which one was used.
    ///
    /// The extension is used if the field is absent or unspecific (`application/octet-stream`, `binary/octet-stream`);
    /// for an unknown extension the field is used even so. `path` may include a query.
    package static func effectiveType(
        header: String?, path: String
    ) -> (type: String?, from: Generation.TypeSource) {
        let isVague =
            header.map { ["", "application/octet-stream", "binary/octet-stream"].contains(essence($0)) } ?? true
        if isVague, let known = pathExtension(path).flatMap({ byExtension[$0] }) { return (known.type, .extension) }
        return (header, .header)
    }

    /// The uniform type identifier (`public.mp3`, `com.apple.m4a-audio`, …) of an asset; nil if there is none that
    /// players know.
    ///
    /// The extension selects among the identifiers of one media type. It is used alone if the media type is absent,
    /// describes only the handling of the asset, or is a server's default for unknown files.
    package static func uniformTypeIdentifier(type: String?, path: String) -> String? {
        let byPath = pathExtension(path).flatMap { byExtension[$0] }
        guard let essence = type.map(essence), !essence.isEmpty else { return byPath?.identifier }
        if let byPath, unspecific.contains(essence) { return byPath.identifier }
        if let byPath, family(byPath.type) == family(essence) { return byPath.identifier }
        return byType[family(essence)]
    }

    /// Media types that describe only the handling of an asset, or are the default for unknown files.
    private static let unspecific: Set<String> = [
        "application/force-download", "application/octet-stream", "application/x-download", "binary/octet-stream",
        "multipart/form-data", "text/plain",
    ]

    /// The media type in lower case without parameters; empty if it is longer than RFC 6838 §4.2 allows.
    package static func essence(_ type: String) -> String {
        var type = type
        return type.withUTF8 { bytes in
            let name = FieldText.trimmed(bytes.prefix(upTo: bytes.firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex))
            return name.count > 255 ? "" : FieldText.lowered(String(decoding: name, as: UTF8.self))
        }
    }

    /// The text after the last dot of the path's last segment, in lower case; nil if there is none or it is longer than
    /// 16 bytes.
    static func pathExtension(_ path: String) -> String? {
        var path = path
        return path.withUTF8 { bytes in
            let path = bytes.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
            let end = path.suffix(17)
            guard let dot = end.lastIndex(of: UInt8(ascii: ".")), dot > 0, bytes[dot - 1] != UInt8(ascii: "/") else {
                return nil
            }
            let suffix = path[(dot + 1)...]
            guard !suffix.isEmpty, !suffix.contains(UInt8(ascii: "/")) else { return nil }
            return FieldText.lowered(String(decoding: suffix, as: UTF8.self))
        }
    }
}
