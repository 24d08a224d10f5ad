import CacheCore

extension MediaPlaylist {
    /// Combines one value of each rendition into that of the playlist, by the renditions that a player uses:
    ///
    /// - HLS: one of the variant streams with video, else one of all variant streams, together with one rendition of each
    ///   of its groups. Groups of subtitles, and groups with a rendition inside the variant stream, are optional.
    /// - DASH: one of the video representations together with one of the audio representations.
    ///
    /// - Parameters:
    ///   - values: the values in the order of ``renditions``; nil: the rendition has none.
    ///   - either: combines the values of alternatives.
    ///   - both: combines the values of renditions that play together.
    /// - Returns: nil if no rendition that must be used has a value.
    package func combined<Value>(
        _ values: [Value?], either: (Value, Value) -> Value, both: (Value, Value) -> Value
    ) -> Value? {
        func best(_ indices: [Int]) -> Value? {
            indices.lazy.compactMap { values[$0] }.reduce(nil) { best, value in best.map { either($0, value) } ?? value
            }
        }
        let main = renditions.indices.filter { renditions[$0].group.isEmpty }
        let video = main.filter { renditions[$0].kind == .video }
        if format == .dash {
            let audio = main.filter { renditions[$0].kind == .audio }
            guard !video.isEmpty, !audio.isEmpty else { return best(video + audio) ?? best(main) }
            guard let picture = best(video), let sound = best(audio) else { return nil }
            return both(picture, sound)
        }
        let muxed = main.filter { renditions[$0].kind == .video || renditions[$0].kind == .other }
        let members = Dictionary(grouping: renditions.indices.filter { !renditions[$0].group.isEmpty }) {
            Alternatives(group: renditions[$0].group, kind: renditions[$0].kind)
        }
        var result: Value?
        for variant in muxed.isEmpty ? main : muxed {
            var own = values[variant]
            for group in Set(renditions[variant].groups) {
                for kind in [TrackKind.video, .audio] {
                    guard let indices = members[Alternatives(group: group, kind: kind)],
                        indices.allSatisfy({ renditions[$0].hasContent })
                    else { continue }
                    own = own.flatMap { own in best(indices).map { both(own, $0) } }
                }
            }
            if let own { result = result.map { either($0, own) } ?? own }
        }
        return result
    }

    /// Renditions of HLS of which a player uses one.
    private struct Alternatives: Hashable {
        var group: String
        var kind: TrackKind
    }
}
