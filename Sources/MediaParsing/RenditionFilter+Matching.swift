import CacheCore

extension RenditionFilter {
    /// The renditions that match, apart from their language.
    func matching(_ renditions: [MediaPlaylist.Rendition]) -> [MediaPlaylist.Rendition] {
        let kind = codecs.flatMap { MediaCodec.kind(of: Substring($0)) }
        return renditions.filter { rendition in
            let isVisual = rendition.kind == .video || rendition.kind == .other
            if let maxHeight, isVisual, (rendition.height ?? .max) > maxHeight { return false }
            guard let codecs = codecs.map(FieldText.lowered),
                kind == nil || isMixed(rendition) || rendition.kind == kind
            else { return true }
            return rendition.codecs.contains { FieldText.lowered($0).hasPrefix(codecs) }
        }
    }

    /// Whether the rendition can have tracks of several kinds.
    private func isMixed(_ rendition: MediaPlaylist.Rendition) -> Bool {
        rendition.kind == .other || rendition.codecs.count > 1
    }

    /// Whether the language of the rendition is the requested one.
    func speaks(_ rendition: MediaPlaylist.Rendition) -> Bool {
        guard let language = language.map(FieldText.lowered) else { return true }
        guard let own = rendition.language.map(FieldText.lowered) else { return false }
        return own == language || own.hasPrefix(language + "-")
    }
}
