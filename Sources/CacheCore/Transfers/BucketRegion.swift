/// Redirects of object stores to the region of a bucket (Amazon S3 User Guide, "Request redirection and the REST API").
package enum BucketRegion {
    /// The region that a redirect with 301 or 307 states; nil: none.
    package static func stated(status: Int, headers: HeaderList) -> String? {
        guard [301, 307].contains(status), let region = headers["x-amz-bucket-region"],
            (1...64).contains(region.utf8.count),
            region.utf8.allSatisfy({ FieldText.isLetter($0) || FieldText.isDigit($0) || $0 == UInt8(ascii: "-") })
        else { return nil }
        return FieldText.lowered(region)
    }

    /// The URL of the same object in another region: the label of the region in the host is replaced, if there is one.
    package static func moved(_ url: UpstreamURL, from old: String, to region: String) -> String {
        let labels = url.host.split(separator: ".", omittingEmptySubsequences: false).map {
            $0 == old ? region : $0 == "s3-" + old ? "s3-" + region : String($0)
        }
        let host = url.host.contains(":") ? url.bracketedHost : labels.joined(separator: ".")
        let port = url.port == url.scheme.defaultPort ? "" : ":\(url.port)"
        return "\(url.scheme.rawValue)://\(host)\(port)\(url.path)" + (url.query.map { "?" + $0 } ?? "")
    }

    /// Whether both URLs are of one service: their schemes and ports are equal, and without the labels of regions one
    /// host is the other, or a bucket below it. Addresses must be equal.
    package static func isSameService(_ one: UpstreamURL, _ other: UpstreamURL, in regions: Set<String>) -> Bool {
        guard one.scheme == other.scheme, one.port == other.port else { return false }
        if one.host == other.host { return true }
        let (left, right) = (labels(of: one.host, without: regions), labels(of: other.host, without: regions))
        let (short, long) = left.count < right.count ? (left, right) : (right, left)
        // An address has no region, and a name of one label is no service.
        guard short.count > 1, let last = short.last, !last.utf8.allSatisfy(FieldText.isDigit), !one.host.contains(":")
        else { return false }
        return Array(long.suffix(short.count)) == short
    }

    private static func labels(of host: String, without regions: Set<String>) -> [String] {
        host.split(separator: ".").compactMap { label in
            if regions.contains(String(label)) { return nil }
            return label.hasPrefix("s3-") && regions.contains(String(label.dropFirst(3))) ? "s3" : String(label)
        }
    }
}

/// The endpoint of the region where a bucket is, learnt from a redirect.
package struct RegionalEndpoint: Hashable, Sendable {
    package var region: String
    /// Scheme, host and port of the redirected requests.
    package var origin: String
    /// Scheme, host and port of the endpoint.
    package var address: String

    /// The endpoint to which the redirects before a final response led. Nil: none of them stated a region, or the target
    /// differs in more than its address.
    package init?(after head: UpstreamHead, to url: String) {
        let regions = head.earlier.compactMap { BucketRegion.stated(status: $0.status, headers: $0.headers) }
        let (origin, address) = (UpstreamURL.address(of: url), UpstreamURL.address(of: head.finalURL))
        guard let region = regions.last, regions.count == head.redirects,
            url.dropFirst(origin.count) == head.finalURL.dropFirst(address.count)
        else { return nil }
        self.init(region: region, origin: origin, address: address)
    }

    package init(region: String, origin: String, address: String) {
        self.region = region
        self.origin = origin
        self.address = address
    }

    /// The URL of the same object at the endpoint; nil if requests for `url` were not redirected.
    package func moved(_ url: String) -> String? {
        UpstreamURL.address(of: url) == origin ? address + url.dropFirst(origin.count) : nil
    }
}
