/// Media types by file name, and the type identifiers that AVFoundation takes.
package enum MediaType {
    /// The type to serve an asset as: what the header says, else what the path's extension tells.
    ///
    /// The extension counts where the header is absent or says no more than "bytes" (`application/octet-stream`,
    /// `binary/octet-stream`); where it is unknown too, the header stands. `path` may have a query behind it.
    package static func effectiveType(
        header: String?, path: String
    ) -> (type: String?, from: Generation.TypeSource) {
        let isVague =
            header.map { ["", "application/octet-stream", "binary/octet-stream"].contains(essence($0)) } ?? true
        if isVague, let known = pathExtension(path).flatMap({ byExtension[$0] }) { return (known.type, .extension) }
        return (header, .header)
    }

    /// The uniform type identifier (`public.mp3`, `com.apple.m4a-audio`, …) of an asset served as `type`; nil where
    /// there is none that players know.
    ///
    /// The extension decides between the identifiers of one type. It decides alone without a type, and where the type says
    /// how the asset is to be handled, or is the default of a server that does not know the file.
    package static func uniformTypeIdentifier(type: String?, path: String) -> String? {
        let byPath = pathExtension(path).flatMap { byExtension[$0] }
        guard let essence = type.map(essence), !essence.isEmpty else { return byPath?.identifier }
        if let byPath, unspecific.contains(essence) { return byPath.identifier }
        if let byPath, family(byPath.type) == family(essence) { return byPath.identifier }
        return byType[family(essence)]
    }

    private static let unspecific: Set<String> = [
        "application/force-download", "application/octet-stream", "application/x-download", "binary/octet-stream",
        "multipart/form-data", "text/plain",
    ]

    /// The type alone, in lower case, without parameters; empty where it is longer than one can be (RFC 6838 §4.2).
    package static func essence(_ type: String) -> String {
        var type = type
        return type.withUTF8 { bytes in
            let name = FieldText.trimmed(bytes.prefix(upTo: bytes.firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex))
            return name.count > 255 ? "" : FieldText.lowered(String(decoding: name, as: UTF8.self))
        }
    }

    /// What stands behind the last dot of the path's last segment, in lower case.
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
