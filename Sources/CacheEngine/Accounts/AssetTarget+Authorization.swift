import CacheCore

/// The decision about the credentials of requests to the upstream. Every caller of a fill and of a probe asks
/// ``AssetTarget/authorized(by:)``; `docs/internals/fills.md` lists the callers.
extension AssetTarget {
    /// Whether the fields of a reader opened the asset: its key has a digest of them, or of the version that they
    /// showed, behind a space. A variant has one such mark more.
    var isReadersOwn: Bool {
        guard key.utf8.first == UInt8(ascii: "/") else { return false }
        return key.utf8.count { $0 == UInt8(ascii: " ") } > (variant.fields.isEmpty ? 0 : 1)
    }

    /// The target of a request that a reader with these fields causes; nil: no reader's request is the cause.
    ///
    /// Throws `.readerRequired` for an asset that a reader's fields opened, if there is no such reader. The credentials
    /// of the origin alone could bring bytes of another account.
    func authorized(by fields: HeaderList?) throws(CacheError) -> AssetTarget {
        guard fields != nil || !isReadersOwn else { throw Self.readerRequired }
        var target = self
        target.forwarded = fields
        return target
    }

    /// Throws `.readerRequired` for content that is private to its readers: a request without their fields gets none of
    /// it.
    func requireContentForAll() throws(CacheError) {
        guard !isReadersOwn, settings.forwarded.isEmpty else {
            throw CacheError(
                .readerRequired, "Content of an origin with forward is private to its readers; read it by its path.")
        }
    }

    /// The error for a request that only a reader may cause.
    static let readerRequired = CacheError(
        .readerRequired,
        "The fields of a reader opened this asset (forward), so that only requests of its readers may fetch it.")
}
