import CacheCore

/// The place of a folder in a bucket of an object store.
struct BucketFolder {
    /// The URL of the bucket, with a `/` at its end.
    let bucket: String
    /// The decoded beginning of the keys; empty: the whole bucket.
    let prefix: String

    /// - Parameter url: the URL of the folder.
    /// - Parameter base: the base URL of the origin. Its host names the bucket if it has no path, or is a host of a bucket
    ///   of Amazon S3 or Google Cloud Storage; otherwise the first segment of its path names it.
    ///
    /// Throws `.malformedRequest` if the path is not UTF-8.
    init(of url: UpstreamURL, below base: UpstreamURL) throws(CacheError) {
        let path = url.path.dropFirst()
        let isInHost = base.path.count < 2 || Self.namesBucket(base.host)
        let name = isInHost ? "" : (path.split(separator: "/", maxSplits: 1).first.map { $0 + "/" } ?? "")
        bucket = "\(url.scheme.rawValue)://\(url.hostField)/\(name)"
        guard let key = String(validating: PercentEncoding.decoded(path.dropFirst(name.count)), as: UTF8.self) else {
            throw CacheError(.malformedRequest, "The path is not valid UTF-8.")
        }
        prefix = key
    }

    /// Whether a host is that of one bucket: `bucket.s3.region.amazonaws.com`, `bucket.storage.googleapis.com`.
    private static func namesBucket(_ host: String) -> Bool {
        if host.hasSuffix(".storage.googleapis.com") { return true }
        guard host.hasSuffix(".amazonaws.com") else { return false }
        return host.split(separator: ".").dropFirst().contains { $0 == "s3" || $0.hasPrefix("s3-") }
    }
}
