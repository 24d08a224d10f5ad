import CacheCore
import CacheEngine
import HTTPTypes
import NIOCore
import ReaderAccess

/// Routes for the other nodes of the fleet, for its purges, and for the departure of this node.
struct FleetController: Controller {
    let cache: AssetCache
    let live: LiveAPISettings
    let clock: any Clock<Duration>

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/fleet", .scope(.read)) { controller, _, _ in .json(controller.document) },
        Route(.get, "/v1/fleet/purges/{number}", .scope(.read)) { controller, request, context in
            guard controller.cache.fleet != nil else {
                throw CacheError(.notFound, "The node is in no fleet; set fleet.etcd.endpoints.")
            }
            guard let number = Int64(try context.parameter("number")) else {
                throw CacheError.invalid("number", "The number of a purge is expected here.")
            }
            let purge = try await FleetPurgeDocument.waiting(
                for: number, of: controller.cache, request, clock: controller.clock)
            return .json(purge)
        },
        Route(.post, "/v1/fleet/leave", .scope(.admin)) { controller, _, _ in
            controller.cache.leaveFleet(true)
            return .json(controller.document)
        },
        Route(.post, "/v1/fleet/join", .scope(.admin)) { controller, _, _ in
            controller.cache.leaveFleet(false)
            return .json(controller.document)
        },
        Route(.get, "/v1/fleet/digest", .node, readsQuery: true) { try await $0.digest($1, $2) },
        Route(.post, "/v1/assets/{assetId}/prefetch", .node, readsQuery: true) { try await $0.prefetch($1, $2) },
    ]

    /// Throws `.unauthorized` unless the request proves a node.
    private func requireNode(_ context: APIContext) throws(CacheError) {
        guard live.values.peers.admit(context.call.credentials) else {
            throw CacheError(
                .unauthorized, "The request proves no node of the fleet; check fleet.keyFile.",
                challenge: context.call.credentials.bearerToken == nil ? nil : BearerChallenge.invalidToken)
        }
    }

    /// The digest of this node's cache: 200, or 304 if the other node has it.
    private func digest(_ request: Request, _ context: APIContext) async throws -> Response {
        try requireNode(context)
        _ = try request.query(accepting: [])
        let digest = try await cache.ownDigest.current()
        let headers: HTTPFields = [
            .eTag: digest.tag, .cacheControl: "no-store", .contentType: "application/octet-stream",
        ]
        guard request.headers[.ifNoneMatch] != digest.tag else {
            return Response(status: .notModified, headers: headers)
        }
        return Response(status: .ok, headers: headers, body: .document(ByteBuffer(bytes: digest.bytes)))
    }

    /// Fetches an item of a job that another node runs. The lines of the response are those of ``NodeItemRun``.
    private func prefetch(_ request: Request, _ context: APIContext) async throws -> Response {
        try requireNode(context)
        _ = try request.query(accepting: [])
        _ = try context.assetID()
        let order = try await request.json(upTo: live.values.limits.bodyBytes) { json, _ in
            try json.decode(NodeItemRequest.self, isStrict: false)
        }
        guard let budgets = context.budgets else { throw CacheError(.internal, "The request has no budget.") }
        let (run, clock, ends) = (try cache.jobs.run(order), clock, [context.disconnection, budgets.feed.shutdown])
        return Response(
            status: .ok, headers: [.contentType: "application/x-ndjson", .cacheControl: "no-store"],
            body: .stream { writer in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask {
                        while (try? await clock.sleep(for: NodeItemRun.interval)) != nil { run.tick() }
                    }
                    for end in ends {
                        group.addTask {
                            await end.wait()
                            run.stop()
                        }
                    }
                    defer { group.cancelAll() }
                    while let line = try await run.next() { try await writer.write(ByteBuffer(json: line)) }
                }
            })
    }

    private var document: FleetDocument {
        FleetDocument(
            node: cache.reader.loopName, state: cache.readiness.rawValue, acceptsPeers: live.values.peers.isEnabled,
            peers: cache.peers.figures.map(FleetDocument.Peer.init),
            etcd: .present(cache.fleet.map { FleetDocument.Etcd($0.report, at: cache.evictions.now) }))
    }
}

extension FleetPurgeDocument {
    /// The progress of a purge, after the time that `Prefer: wait` grants (RFC 7240 §4.3) or when all nodes have applied it.
    /// Nil without a purge of the fleet.
    static func waiting(
        for number: Int64?, of cache: AssetCache, _ request: Request, clock: any Clock<Duration>
    ) async throws(CacheError) -> FleetPurgeDocument? {
        guard let number, let fleet = cache.fleet else { return nil }
        let limit = Preferences(request).wait ?? .zero
        return FleetPurgeDocument(try await fleet.progress(of: number, within: limit, clock: clock))
    }
}
