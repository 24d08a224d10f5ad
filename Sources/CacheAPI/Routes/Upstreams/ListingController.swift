import CacheCore
import CacheEngine
import HTTPTypes
import ReaderAccess

/// The route for listings of upstreams.
struct ListingController: Controller {
    let lister: UpstreamLister
    let live: LiveAPISettings
    let readers: ReaderLimits

    static let routes: [Route<Self>] = [
        Route(.post, "/v1/list", .scope(.read), limits: .checked) { try await $0.list($1, $2) }
    ]

    /// Lists until the client disconnects. A reader with limits must name a folder inside them, and gets the entries
    /// inside them.
    private func list(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.json(upTo: live.values.limits.bodyBytes) { json, _ in
            try ListingOrder(json).request
        }
        let reader = context.reader
        try ReaderLimits.check(.mounted(origin: order.origin, path: order.path, key: nil), for: reader)
        if let refusal = context.bodyClaim?.grow(by: UpstreamLister.bodyLimit) { throw RefusedBody(refusal).error }
        var page = try await whileClientStays(context.disconnection) { () async throws(CacheError) in
            try await lister.page(order)
        }
        if reader?.isLimited == true {
            let found = page.entries.count
            page.entries.removeAll { entry in
                let reference = AssetReference.mounted(origin: order.origin, path: entry.reference, key: nil)
                return (try? ReaderLimits.check(reference, for: reader)) == nil
            }
            page.skippedEntries += found - page.entries.count
        }
        return .json(ListingDocument(page, of: order.origin))
    }
}
