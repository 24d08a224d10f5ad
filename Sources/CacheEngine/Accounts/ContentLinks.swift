import CacheCore

/// A link to the content of one target, from an API call or a redirect. It is a secret, and in memory only.
struct ContentLink: Hashable, Sendable {
    /// The link. It differs from all others by `number`.
    let url: String
    let number: Int
    /// The end of its use; nil: it is used for one request.
    let expiresAt: Timestamp?
    /// The call that it came from; nil: a redirect.
    let resolution: LinkResolution?
    /// The setting of the origin that permitted the redirect.
    let redirectHosts: [String]
}

/// The current links, by target.
struct ContentLinks {
    private var links: BoundedTable<String, ContentLink>
    private var count = 0

    init(limit: Int = 16_384) { links = BoundedTable(capacity: limit) }

    /// The link of a target at a time; nil if there is none, or if it came from other settings: another API call, a
    /// redirect where a call is needed, or a redirect under other rules.
    mutating func link(of target: AssetTarget, at now: Timestamp) -> ContentLink? {
        guard let link = links[Self.key(target)], let end = link.expiresAt, now < end,
            link.redirectHosts == target.settings.redirectHosts
        else { return nil }
        let wanted = target.settings.resolution.url == nil ? nil : target.settings.resolution
        return link.resolution == wanted ? link : nil
    }

    /// Stores a link, unless it is for one request only.
    mutating func keep(
        _ url: String, of target: AssetTarget, until expiresAt: Timestamp?, from resolution: LinkResolution?,
        at now: Timestamp
    ) -> ContentLink {
        count += 1
        let link = ContentLink(
            url: url, number: count, expiresAt: expiresAt, resolution: resolution,
            redirectHosts: target.settings.redirectHosts)
        guard expiresAt.map({ $0 > now }) ?? false else { return link }
        links[Self.key(target)] = link
        return link
    }

    /// Drops a link that was refused, unless it has been replaced.
    mutating func drop(_ link: ContentLink, of target: AssetTarget) {
        if links[Self.key(target)]?.number == link.number { links[Self.key(target)] = nil }
    }

    static func key(_ target: AssetTarget) -> String {
        // The forwarded fields are part of the key of private assets.
        target.originName + "\n" + target.url + "\n"
            + (target.forwarded?.fields ?? []).map { "\($0.name):\($0.value)" }.joined(separator: "\n")
    }
}
