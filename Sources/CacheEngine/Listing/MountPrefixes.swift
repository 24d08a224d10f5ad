import CacheCore
import MediaParsing

/// The URLs below which a file belongs to a mount.
struct MountPrefixes: Sendable {
    /// Parses URLs into their normal form.
    private let upstream: any Upstream
    /// In normal form, with a `/` at the end.
    private let prefixes: [String]

    /// The base URLs of the target's origin and of its mirrors; none for an absolute URL.
    init(of target: AssetTarget, upstream: any Upstream) {
        self.upstream = upstream
        let isMounted = target.originName != Origin.absoluteName
        let bases = isMounted ? [target.settings.baseURL] + target.settings.mirrors : []
        prefixes = bases.compactMap { try? upstream.parse(url: $0).text }.map { $0.hasSuffix("/") ? $0 : $0 + "/" }
    }

    /// The URL of a reference in a document with the URL `base`, in normal form; nil if it is none.
    func url(of reference: String, against base: String) -> String? {
        MediaURI.resolved(reference, against: base).flatMap { try? upstream.parse(url: $0).text }
    }

    /// The path of a URL below the mount, with its query; nil if it lies elsewhere.
    func path(of url: String) -> String? {
        prefixes.first(where: url.hasPrefix).map { String(url.dropFirst($0.count)) }
    }
}
