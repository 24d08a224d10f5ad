extension MediaType {
    /// The media type and the uniform type identifier (nil: none is known) for one file extension.
    struct Row {
        let type: String
        let identifier: String?
    }

    /// The rows by extension, in lower case.
    static let byExtension: [String: Row] = [
        "3g2": Row(type: "video/3gpp2", identifier: "public.3gpp2"),
        "3gp": Row(type: "video/3gpp", identifier: "public.3gpp"),
        "aac": Row(type: "audio/aac", identifier: "public.aac-audio"),
        "ac3": Row(type: "audio/ac3", identifier: "public.ac3-audio"),
        "aif": Row(type: "audio/aiff", identifier: "public.aiff-audio"),
        "aiff": Row(type: "audio/aiff", identifier: "public.aiff-audio"),
        "amr": Row(type: "audio/amr", identifier: "org.3gpp.adaptive-multi-rate-audio"),
        "ass": Row(type: "text/x-ssa", identifier: nil),
        "avi": Row(type: "video/x-msvideo", identifier: "public.avi"),
        "avif": Row(type: "image/avif", identifier: "public.avif"),
        "caf": Row(type: "audio/x-caf", identifier: "com.apple.coreaudio-format"),
        "ec3": Row(type: "audio/eac3", identifier: "public.enhanced-ac3-audio"),
        "eac3": Row(type: "audio/eac3", identifier: "public.enhanced-ac3-audio"),
        "flac": Row(type: "audio/flac", identifier: "org.xiph.flac"),
        "flv": Row(type: "video/x-flv", identifier: nil),
        "gif": Row(type: "image/gif", identifier: "com.compuserve.gif"),
        "heic": Row(type: "image/heic", identifier: "public.heic"),
        "jpeg": Row(type: "image/jpeg", identifier: "public.jpeg"),
        "jpg": Row(type: "image/jpeg", identifier: "public.jpeg"),
        "json": Row(type: "application/json", identifier: "public.json"),
        "m2ts": Row(type: "video/mp2t", identifier: "public.mpeg-2-transport-stream"),
        "m3u": Row(type: "application/vnd.apple.mpegurl", identifier: "public.m3u-playlist"),
        "m3u8": Row(type: "application/vnd.apple.mpegurl", identifier: "public.m3u-playlist"),
        "m4a": Row(type: "audio/mp4", identifier: "com.apple.m4a-audio"),
        "m4b": Row(type: "audio/mp4", identifier: "com.apple.m4a-audio"),
        "m4s": Row(type: "video/iso.segment", identifier: nil),
        "m4v": Row(type: "video/x-m4v", identifier: "com.apple.m4v-video"),
        "mid": Row(type: "audio/midi", identifier: "public.midi-audio"),
        "mka": Row(type: "audio/x-matroska", identifier: nil),
        "mkv": Row(type: "video/x-matroska", identifier: nil),
        "mov": Row(type: "video/quicktime", identifier: "com.apple.quicktime-movie"),
        "mp2": Row(type: "audio/mpeg", identifier: "public.mp2"),
        "mp3": Row(type: "audio/mpeg", identifier: "public.mp3"),
        "mp4": Row(type: "video/mp4", identifier: "public.mpeg-4"),
        "mpd": Row(type: "application/dash+xml", identifier: nil),
        "mpeg": Row(type: "video/mpeg", identifier: "public.mpeg"),
        "mpg": Row(type: "video/mpeg", identifier: "public.mpeg"),
        "mxf": Row(type: "application/mxf", identifier: nil),
        "oga": Row(type: "audio/ogg", identifier: nil),
        "ogg": Row(type: "audio/ogg", identifier: nil),
        "ogv": Row(type: "video/ogg", identifier: nil),
        "opus": Row(type: "audio/ogg", identifier: nil),
        "png": Row(type: "image/png", identifier: "public.png"),
        "qt": Row(type: "video/quicktime", identifier: "com.apple.quicktime-movie"),
        "srt": Row(type: "application/x-subrip", identifier: nil),
        "svg": Row(type: "image/svg+xml", identifier: "public.svg-image"),
        "ts": Row(type: "video/mp2t", identifier: "public.mpeg-2-transport-stream"),
        "ttml": Row(type: "application/ttml+xml", identifier: nil),
        "vtt": Row(type: "text/vtt", identifier: "org.w3.webvtt"),
        "wav": Row(type: "audio/wav", identifier: "com.microsoft.waveform-audio"),
        "wave": Row(type: "audio/wav", identifier: "com.microsoft.waveform-audio"),
        "weba": Row(type: "audio/webm", identifier: nil),
        "webm": Row(type: "video/webm", identifier: nil),
        "webp": Row(type: "image/webp", identifier: "org.webmproject.webp"),
        "wma": Row(type: "audio/x-ms-wma", identifier: "com.microsoft.windows-media-wma"),
        "wmv": Row(type: "video/x-ms-wmv", identifier: "com.microsoft.windows-media-wmv"),
    ]

    /// The uniform type identifier for a media type, if the extension does not decide.
    static let byType: [String: String] = [
        "application/vnd.apple.mpegurl": "public.m3u-playlist",
        "audio/aac": "public.aac-audio",
        "audio/ac3": "public.ac3-audio",
        "audio/aiff": "public.aiff-audio",
        "audio/eac3": "public.enhanced-ac3-audio",
        "audio/flac": "org.xiph.flac",
        "audio/midi": "public.midi-audio",
        "audio/mp4": "public.mpeg-4-audio",
        "audio/mpeg": "public.mp3",
        "audio/wav": "com.microsoft.waveform-audio",
        "audio/x-caf": "com.apple.coreaudio-format",
        "audio/x-m4a": "com.apple.m4a-audio",
        "image/avif": "public.avif",
        "image/gif": "com.compuserve.gif",
        "image/heic": "public.heic",
        "image/jpeg": "public.jpeg",
        "image/png": "public.png",
        "image/webp": "org.webmproject.webp",
        "text/vtt": "org.w3.webvtt",
        "video/3gpp": "public.3gpp",
        "video/3gpp2": "public.3gpp2",
        "video/mp2t": "public.mpeg-2-transport-stream",
        "video/mp4": "public.mpeg-4",
        "video/mpeg": "public.mpeg",
        "video/quicktime": "com.apple.quicktime-movie",
        "video/x-m4v": "com.apple.m4v-video",
        "video/x-msvideo": "public.avi",
    ]

    /// The spelling of a media type that the tables use, for types with several spellings.
    static func family(_ essence: String) -> String {
        switch essence {
        case "audio/mp3", "audio/x-mp3", "audio/x-mpeg": "audio/mpeg"
        case "audio/x-aac", "audio/aacp": "audio/aac"
        case "audio/x-flac": "audio/flac"
        case "audio/x-wav", "audio/wave", "audio/vnd.wave": "audio/wav"
        case "audio/x-aiff": "audio/aiff"
        case "application/x-mpegurl", "audio/mpegurl", "audio/x-mpegurl": "application/vnd.apple.mpegurl"
        case "application/mp4": "video/mp4"
        case "video/avi", "video/msvideo": "video/x-msvideo"
        case "image/jpg": "image/jpeg"
        default: essence
        }
    }
}
