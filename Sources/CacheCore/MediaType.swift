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
    /// The extension decides between the identifiers of one type; without a type it decides alone.
    package static func uniformTypeIdentifier(type: String?, path: String) -> String? {
        let byPath = pathExtension(path).flatMap { byExtension[$0] }
        guard let essence = type.map(essence), !essence.isEmpty else { return byPath?.identifier }
        if let byPath, family(byPath.type) == family(essence) { return byPath.identifier }
        return byType[family(essence)]
    }

    /// The type alone, in lower case, without parameters.
    package static func essence(_ type: String) -> String {
        let end = type.utf8.firstIndex(of: UInt8(ascii: ";")) ?? type.endIndex
        return FieldText.lowered(FieldText.trimmed(type[..<end]))
    }

    /// What stands behind the last dot of the path's last segment, in lower case.
    static func pathExtension(_ path: String) -> String? {
        let end = path.utf8.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? path.endIndex
        let segments = path[..<end].utf8
        let slash = segments.lastIndex(of: UInt8(ascii: "/"))
        let name = segments.suffix(from: slash.map(segments.index(after:)) ?? segments.startIndex)
        guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot != name.startIndex else { return nil }
        let suffix = name[name.index(after: dot)...]
        return suffix.isEmpty || suffix.count > 16 ? nil : FieldText.lowered(Substring(suffix))
    }
}
