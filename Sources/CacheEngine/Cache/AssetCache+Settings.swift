package import CacheCore
package import MediaParsing

extension AssetCache {
    /// The configuration of the cache.
    package struct Settings: Sendable {
        /// The policy of a store that has none yet.
        package var policy: PolicySettings
        /// The settings for reads of absolute URLs.
        package var absolute: OriginSettings
        /// The hosts that absolute URLs may name.
        package var allowedHosts: HostPatterns
        /// The origins of the configuration; they replace stored origins of the same name.
        package var origins: [Origin]
        /// The number of threads for blocking file operations.
        var diskThreads: Int
        /// The maximum number of prefetch items in progress.
        package var jobConcurrency: Int
        /// The maximum numbers of items of prefetch jobs.
        package var jobLimits: PrefetchSchedule.Limits
        package var scrub: ScrubSchedule
        /// The directory of the origins' credentials files; nil: no origin may name one.
        package var credentialsDirectory: String?
        /// The directory of the fallback files; nil: no origin may name one.
        package var fallbackDirectory: String?
        /// The price of a gigabyte (10^9 bytes) from the upstream, in any currency; nil: unknown.
        package var pricePerGigabyte: Double?
        /// The number of transfers queued for readers at which reads that need a fill are rejected.
        package var maxQueuedFills: Int
        /// Limits for media indices and playlists.
        package var mediaLimits: MediaLimits
        /// The longest wait of an asset list for the commit of the latest changes while jobs are unfinished.
        package var listWait: Duration
        /// The fleet whose state in etcd this node applies; nil: none.
        package var fleet: FleetMember.Settings?
        /// The webhooks at the start.
        package var webhooks: [WebhookSettings] = []

        package init(
            policy: PolicySettings, absolute: OriginSettings, allowedHosts: HostPatterns, origins: [Origin],
            diskThreads: Int = 4, jobConcurrency: Int = 16,
            jobLimits: PrefetchSchedule.Limits = PrefetchSchedule.Limits(), scrub: ScrubSchedule = ScrubSchedule(),
            credentialsDirectory: String? = nil, fallbackDirectory: String? = nil, pricePerGigabyte: Double? = nil,
            maxQueuedFills: Int = 4096, mediaLimits: MediaLimits = MediaLimits(),
            listWait: Duration = .milliseconds(25)
        ) {
            self.policy = policy
            self.absolute = absolute
            self.allowedHosts = allowedHosts
            self.origins = origins
            self.diskThreads = diskThreads
            self.jobConcurrency = jobConcurrency
            self.jobLimits = jobLimits
            self.scrub = scrub
            self.credentialsDirectory = credentialsDirectory
            self.fallbackDirectory = fallbackDirectory
            self.pricePerGigabyte = pricePerGigabyte
            self.maxQueuedFills = maxQueuedFills
            self.mediaLimits = mediaLimits
            self.listWait = listWait
        }
    }
}
