package import CacheCore

extension JobSnapshot {
    /// The `Job` schema.
    package var json: JSON {
        [
            "jobId": .string(record.id), "state": .string(record.state.rawValue), "label": .text(record.label),
            "queue": .text(record.queue), "priority": .string(record.priority.rawValue),
            "createdAt": .instant(record.createdAt),
            "startedAt": .instant(record.startedAt), "finishedAt": .instant(record.finishedAt),
            "deadlineAt": .instant(record.deadlineAt), "timeoutSeconds": .seconds(record.timeout),
            "maxBytesPerSecond": .bytes(record.maxBytesPerSecond), "itemsTotal": .count(tally.itemsTotal),
            "itemsDone": .count(tally[.succeeded]), "itemsFailed": .count(tally[.failed]),
            "itemsWaiting": .count(tally[.waiting]), "itemsTimedOut": .count(tally[.timedOut]),
            "itemsCancelled": .count(tally[.cancelled]),
            "itemsUnknown": .count(tally.itemsUnknown), "bytesTotal": .bytes(tally.bytesTotal),
            "bytesDone": .integer(tally.bytesDone), "bytesFromCache": .integer(tally.bytesFromCache),
            "bytesFromUpstream": .integer(tally.bytesFromUpstream),
            "bytesPerSecond": .number(bytesPerSecond.rounded()), "etaSeconds": .seconds(eta),
            "error": .optional(record.error, \.json),
        ]
    }
}
