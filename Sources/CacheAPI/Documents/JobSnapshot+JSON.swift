package import CacheCore
package import CacheEngine

extension JobSnapshot {
    /// The `Job` schema.
    package var json: JSON {
        [
            "jobId": .string(record.id), "state": .string(record.state.rawValue), "label": .text(record.label),
            "queue": .text(record.queue), "priority": .string(record.priority.rawValue),
            "createdAt": .instant(record.createdAt),
            "startedAt": .instant(record.startedAt), "finishedAt": .instant(record.finishedAt),
            "deadlineAt": .instant(record.deadlineAt), "timeoutSeconds": .seconds(record.timeout),
            "maxBytesPerSecond": .bytes(record.maxBytesPerSecond), "itemsTotal": .count(itemsTotal),
            "itemsDone": .count(itemsDone), "itemsFailed": .count(itemsFailed), "itemsTimedOut": .count(itemsTimedOut),
            "itemsCancelled": .count(itemsCancelled), "itemsUnknown": .count(itemsUnknown),
            "bytesTotal": .bytes(bytesTotal),
            "bytesDone": .integer(bytesDone), "bytesFromCache": .integer(bytesFromCache),
            "bytesFromUpstream": .integer(bytesFromUpstream),
            "bytesPerSecond": .number(bytesPerSecond.rounded()), "etaSeconds": .seconds(eta),
            "error": .optional(record.error, \.json),
        ]
    }
}
