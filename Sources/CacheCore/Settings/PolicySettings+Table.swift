extension PolicySettings {
    /// All settings of the policy except the quotas of tags.
    package static let settings: [Setting<Self>] = [
        Setting(
            "capacity", orNone: \.capacityBytes, .size(atLeast: PolicySettings.minCapacityBytes),
            "disk blocks that the files of assets may use, at least 16 MiB, or `none`"),
        Setting(
            "algorithm", \.algorithm, .choice,
            "eviction algorithm: `lru`, `sieve`, `s3fifo`, `lfuda` or `gdsf`"),
        Setting(
            "highWatermark", \.highWatermark, .fraction, "eviction starts above this fraction of the capacity"),
        Setting(
            "lowWatermark", \.lowWatermark, .fraction,
            "eviction stops below this fraction; must be below `highWatermark`"
        ).checked { policy in
            policy.lowWatermark < policy.highWatermark
                ? nil : SettingFault("The low watermark must be below the high watermark.")
        },
        Setting(
            "minFreeDisk", \.minFreeDiskBytes, .size(), "free space of the file system that Larder leaves to others"
        ),
        Setting(
            "admission.minUses", \.minUses, .count(1...16, example: 2),
            "an asset is stored from this many uses on (1–16); uses within five minutes count as one"),
        Setting(
            "maxPinned", orNone: \.maxPinnedBytes, .size(example: "5GiB"),
            "maximum total length of all pinned assets; a pin above it is refused"),
        Setting(
            "maxIdle", orNone: \.maxIdle, .duration(example: "30d"), "evict assets that were not read for this long"
        ),
        Setting(
            "maxAge", orNone: \.maxAge, .duration(example: "90d"),
            "evict assets that were created longer ago than this"),
        Setting(
            "grace", \.grace, .duration(allowsZero: true, example: "1m"),
            "bytes younger than this are evicted only while usage is above the capacity, or for a fill that waits "
                + "for space"),
    ]
}
