package import CacheCore

extension JobItemRecord {
    /// The `JobItem` schema.
    package var json: JSON {
        .object(
            [.init("index", .count(index))] + reference.members + [
                .init("assetId", .text(assetID?.description ?? known?.description)),
                .init("ranges", .array(ranges.map(JSON.string))), .init("play", .optional(play, \.json)),
                .init("media", playResult?.json ?? .null),
                .init("playableSeconds", .optional(playResult) { .mediaTime($0.playableSeconds) }),
                .init("parent", .optional(parent) { .count($0) }),
                .init("tags", .array(tags.map(JSON.string))),
                .init("pinned", .bool(isPinned)), .init("state", .string(state.rawValue)),
                .init("waitingFor", .text(presentWait?.hold.cause.rawValue)),
                .init("retryAt", .instant(presentWait?.retryAt)),
                .init("attempts", .count(attempts)), .init("bytesTotal", .bytes(bytesTotal)),
                .init("bytesDone", .integer(bytesDone)), .init("bytesFromCache", .integer(bytesFromCache)),
                .init("bytesFromUpstream", .integer(bytesFromUpstream)), .init("error", .optional(error, \.json)),
            ])
    }

    /// The wait; nil in all other states.
    private var presentWait: ItemWait? { state == .waiting ? wait : nil }

    /// The ID of an asset that the request named by ID.
    private var known: AssetID? {
        if case .known(let id) = reference { id } else { nil }
    }
}
