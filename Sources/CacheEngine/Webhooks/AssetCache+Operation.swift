import CacheCore
import CacheStore
import Logging

/// Checks of the disk and of credentials, for events.
extension AssetCache {
    /// Reports a disk that has become full. Call it after a measurement of the disk, once per second.
    func checkDisk() throws(CacheError) {
        let store = context.store
        let (used, least) = context.space.with { ($0.usedBytes, $0.settings.minFreeDiskBytes) }
        // An empty store has nothing to evict, and otherwise the evictor has found nothing.
        let isShort = context.space.isShortOfDisk && (used == 0 || store.prefersMemory)
        let (refused, uptime) = (store.refusedWrites, context.uptime())
        guard diskWatch.withLock({ $0.check(isShort: isShort, refused: refused, at: uptime) }) else { return }
        let event = DiskEvent(
            freeBytes: try store.freeDiskBytes(), minFreeBytes: least, usedBytes: used, hasRefusedWrites: !isShort)
        context.logger.warning(
            "the disk is full", metadata: ["freeBytes": "\(event.freeBytes)", "minFreeBytes": "\(least)"])
        context.events.publish(.diskFull(event))
    }

    /// Reports credentials of origins that end and are not renewed.
    func checkCredentials() async throws(CacheError) {
        let accounts = context.upstreams.accounts
        let findings = resolver.origins.all.map(\.origin).compactMap { origin in
            let auth = origin.settings.auth
            return auth.kind.map { kind in
                CredentialsWatch.Finding(
                    origin: origin.name, figures: accounts.figures(of: origin.name, kind),
                    isFromFile: kind == .sas || kind == .s3 && auth.credentials == .file)
            }
        }
        let now = context.wallClock.now()
        for event in credentialsWatch.withLock({ $0.check(findings, at: now) }) {
            context.logger.warning(
                "the credentials of an origin end and are not renewed",
                metadata: ["origin": "\(event.origin)", "expiresAt": "\(RFC3339.format(event.expiresAt))"])
            context.events.publish(.credentialsExpiring(event))
        }
    }
}
