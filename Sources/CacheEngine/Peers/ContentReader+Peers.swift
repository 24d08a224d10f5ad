package import CacheCore
import CacheStore

/// Reads of other nodes of the fleet.
extension ContentReader {
    /// The request of another node.
    package struct PeerRequest: Sendable {
        package var content: ContentRequest
        /// The name of the node's process.
        package var name: String
        /// Whether bytes of an encrypted origin may be sent.
        package var isConfidential: Bool

        package init(content: ContentRequest, name: String, isConfidential: Bool) {
            self.content = content
            self.name = name
            self.isConfidential = isConfidential
        }

        /// Whether the node knows the generation, and decides itself about its freshness.
        fileprivate var knowsGeneration: Bool {
            content.headers["If-Match"] != nil || content.headers["If-Unmodified-Since"] != nil
        }
    }

    /// The answer to another node.
    package enum PeerReading: Sendable {
        /// The bytes from the first requested one on that are on disk or that fills in flight bring.
        case read(ContentRead)
        /// The first byte is not there, but this node is about to request it from the upstream.
        case coming
        /// The first byte is not there. `next`: the first requested byte that is; nil: none.
        case missing(next: Int64?)
    }

    /// The value of ``PeerNodes/fleetField`` in an answer to another node; nil without etcd.
    package var peerState: String? { context.peers.fleetFieldValue }

    /// Opens a read for another node. It starts no request to an upstream and asks no other node. A request with a body
    /// waits for an answer of the upstream that this node is about to get.
    ///
    /// - A request without a condition gets a fresh stored response only.
    /// - Only a generation with a strong validator whose bytes can be fetched by ranges is shared.
    ///
    /// Throws `.notFound` for an unknown asset, and `.readerRequired` for content that is private to its readers.
    package func readForPeer(_ id: AssetID, _ request: PeerRequest) async throws(CacheError) -> PeerReading {
        let asset: OpenAsset
        if let open = context.openAssets.acquire(id) {
            asset = open
        } else {
            asset = try await resolver.open(try await resolver.resolve(.known(id)))
        }
        var reader: FillLedger.ReaderID?
        do throws(CacheError) {
            try asset.target.requireContentForAll()
            guard request.isConfidential || !asset.target.settings.isEncrypted else { throw Self.isAbsent }
            let joined = asset.joinPassively(waitLimit: asset.target.settings.readTimeout)
            reader = joined
            let reading = try await reading(of: asset, to: joined, request)
            if case .read = reading { return reading }
            asset.leave(joined)
            context.openAssets.release(asset)
            return reading
        } catch {
            if let reader { asset.leave(reader) }
            context.openAssets.release(asset)
            if error.code == .notCached { return .missing(next: nil) }
            throw error
        }
    }

    private static let isAbsent = CacheError(.notCached, "The asset is not shared with other nodes.")

    /// The reading of a joined node. A read takes over the hold on `asset` and the reader. Throws `.notCached` if the asset
    /// is not shared, or if its bytes do not come after all.
    private func reading(
        of asset: OpenAsset, to reader: FillLedger.ReaderID, _ request: PeerRequest
    ) async throws(CacheError) -> PeerReading {
        if asset.record == nil {
            guard asset.isComing(0, before: request.name) else { throw Self.isAbsent }
            guard !request.content.isHead else { return .coming }
            _ = try await asset.nextPresence(of: reader)
        }
        let (generation, wanted) = try sharedPart(of: asset, request)
        var found = obtainable(wanted, of: asset)
        if found.isEmpty {
            guard asset.isComing(wanted.lowerBound, before: request.name) else {
                return .missing(next: asset.look { $0.ledger.firstObtainable(in: wanted) })
            }
            guard !request.content.isHead else { return .coming }
            asset.want(wanted, by: reader)
            _ = try await asset.nextPresence(of: reader)
            found = obtainable(wanted, of: asset)
            guard !found.isEmpty else { throw Self.isAbsent }
        }
        var plan = ContentPlan.partial(generation, found, of: generation.length)
        if request.content.isHead { plan.body = [] } else { asset.distrust(found) }
        var outcome = ReadOutcome(requestClass: .hit)
        outcome.isForPeer = true
        return .read(
            ContentRead(
                asset: asset, reader: reader, plan: plan, outcome: outcome,
                age: generation.age(at: context.wallClock.now()), cachedBefore: ByteRangeSet()))
    }

    private func obtainable(_ wanted: ByteRange, of asset: OpenAsset) -> ByteRange {
        asset.look { $0.file?.lock == nil ? $0.ledger.obtainable(wanted) : wanted.prefix(0) }
    }

    /// The generation and the requested part of it. Throws `.notCached` if it is not shared.
    private func sharedPart(
        of asset: OpenAsset, _ request: PeerRequest
    ) throws(CacheError) -> (Generation, ByteRange) {
        let now = context.wallClock.now()
        guard let generation = asset.record?.generation, generation.isShared, let length = generation.length,
            generation.acceptsRanges == true || asset.look({ $0.ledger.isComplete }),
            asset.look({ $0.ending == nil && $0.keepsBytes && $0.canContinue(generation) }),
            request.knowsGeneration || asset.isFresh(at: now),
            ConditionalRequest.evaluate(request.content.headers, validators: generation.validators, now: now)
                != .failed,
            case .runs(let runs) = RangeHeader.parse(request.content.headers.combined("Range")).resolve(length: length),
            runs.count == 1, let wanted = runs.first
        else { throw Self.isAbsent }
        return (generation, wanted)
    }
}

extension Generation {
    /// Whether other nodes may combine bytes of it with theirs.
    fileprivate var isShared: Bool { validators.strong != nil && passedStatus == nil && isStorable }
}
