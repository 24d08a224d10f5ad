import CacheCore
import UpstreamAccounts

/// The API call that lists a folder of an origin with `resolve.list`.
struct FolderCall {
    /// The folder below the mount.
    let target: AssetTarget
    let upstreams: Upstreams

    var settings: FolderListing { target.settings.resolution.list }

    /// The request without authorization.
    ///
    /// - Parameter place: ``FolderListing/Page/next`` of the part before; nil: the first part.
    ///
    /// Throws `.upstreamForbidden` for a next part at another host.
    func request(at place: String?) throws(CacheError) -> UpstreamRequest {
        guard let first = settings.url else { throw CacheError(.internal, "The origin has no resolve.list.url.") }
        let values = FolderListing.Values(path: try LinkCall.path(of: target, over: upstreams), place: place)
        var request = upstreams.request(to: target, priority: .live)
        let template = place == nil ? first : settings.nextURL ?? first
        if template == "{cursor}", let place {
            request.url = try checked(place, first, values)
        } else {
            request.url = values.filled(template) { PercentEncoding.encoded($0.utf8, keeping: "/") }
        }
        request.method = settings.method == .get ? .get : .post
        request.originName = target.originName + " (links)"  // the limit of the origin, apart from its content
        request.followsRedirects = false
        // Another URL has another body.
        let body = place == nil ? settings.body : settings.nextBody ?? (settings.nextURL == nil ? settings.body : nil)
        if let body {
            request.body = Array(values.filled(body) { String(JSON.string($0).text.dropFirst().dropLast()) }.utf8)
            request.headers.set("Content-Type", "application/json")
        }
        return request
    }

    /// The URL of the next part, which the response names.
    private func checked(
        _ next: String, _ first: String, _ values: FolderListing.Values
    ) throws(CacheError) -> String {
        let client = upstreams.client
        let call = try client.parse(url: values.filled(first) { PercentEncoding.encoded($0.utf8, keeping: "/") })
        guard let url = try? client.parse(url: next), url.isSameHost(as: call) else {
            throw CacheError(
                .upstreamForbidden,
                "The API of the origin \(target.originName) names a next part of the folder on another host.")
        }
        return url.text
    }
}

/// The place in a folder of an API where the next page begins: a part, and the number of its entries before the page.
struct FolderPlace {
    /// ``FolderListing/Page/next``; nil: the first part.
    var part: String?
    var skipped = 0

    init(part: String?, skipped: Int = 0) {
        self.part = part
        self.skipped = skipped
    }

    /// Parses ``text``. Throws `.invalidField` for another text.
    init(_ cursor: String?) throws(CacheError) {
        guard let cursor else { return }
        let parts = cursor.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let skipped = Int(parts[0]), (0...Listing.entryLimit).contains(skipped) else {
            throw .invalid("cursor", "The value is no nextCursor of a listing.")
        }
        self.skipped = skipped
        part = parts[1].isEmpty ? nil : String(parts[1])
    }

    /// The cursor.
    var text: String { "\(skipped):\(part ?? "")" }
}

/// Folders of origins with `resolve.list`.
extension UpstreamLister {
    /// A page of the folder, in the order of the API.
    func apiPage(_ request: ListingRequest, at target: AssetTarget) async throws(CacheError) -> ListingPage {
        let call = FolderCall(target: target, upstreams: upstreams)
        let place = try FolderPlace(request.cursor)
        let response = try await response(to: call.request(at: place.part), at: target, isOfServer: false) {
            () async throws(CacheError) in
            try await upstreams.accounts.apiAccess(to: target)
        }
        let part = try call.settings.page(response.body, at: place.part)
        var listing = Listing()
        listing.entries = Array(part.entries.dropFirst(place.skipped).prefix(request.limit))
        let end = place.skipped + listing.entries.count
        if end < part.entries.count {
            listing.continuation = FolderPlace(part: place.part, skipped: end).text
        } else {
            listing.continuation = part.next.map { FolderPlace(part: $0).text }
        }
        let folder = target.url.withoutQuery
        let isBelowMount = call.settings.path != nil
        let base = isBelowMount ? target.settings.baseURL : folder
        var page = page(
            of: listing, .api, against: base.hasSuffix("/") ? base : base + "/", request, at: target)
        if let query = call.settings.query {
            for index in page.entries.indices where !page.entries[index].isFolder {
                page.entries[index].reference += "?" + query
            }
        }
        page.responseBytes = response.body.count
        return page
    }
}
