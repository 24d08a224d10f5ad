import CacheCore
import Testing

@Suite struct BucketRegionTests {
    private func url(_ host: String, port: Int = 443, scheme: UpstreamURL.Scheme = .https) -> UpstreamURL {
        UpstreamURL(scheme: scheme, host: host, port: port, path: "/k", query: "v=1", text: "")
    }

    @Test(
        "Hosts of one service differ in the region and the bucket only",
        arguments: [
            ("media.s3.us-east-1.amazonaws.com", "media.s3.eu-west-1.amazonaws.com", true),
            ("media.s3.amazonaws.com", "media.s3.eu-west-1.amazonaws.com", true),
            ("media.s3.amazonaws.com", "media.s3-eu-west-1.amazonaws.com", true),
            ("s3.us-east-1.amazonaws.com", "media.s3.eu-west-1.amazonaws.com", true),
            ("media.s3.us-east-1.example", "media.s3.eu-west-1.example", true),
            ("127.0.0.1", "127.0.0.1", true), ("::1", "::1", true),
            ("media.s3.us-east-1.amazonaws.com", "other.s3.eu-west-1.amazonaws.com", false),
            ("media.s3.us-east-1.amazonaws.com", "media.s3.eu-west-1.amazonaws.com.evil.example", false),
            ("media.s3.us-east-1.amazonaws.com", "eu-west-1.com", false),
            ("media.s3.us-east-1.amazonaws.com", "evilmedia.s3.eu-west-1.amazonaws.com", false),
            ("us-east-1.com", "eu-west-1.evil.com", false), ("10.0.0.1", "1.10.0.0.1", false),
            ("127.0.0.1", "localhost", false), ("::1", "::2", false),
        ])
    func services(one: String, other: String, isSame: Bool) {
        let regions: Set = ["us-east-1", "eu-west-1"]
        #expect(BucketRegion.isSameService(url(one), url(other), in: regions) == isSame)
        #expect(BucketRegion.isSameService(url(other), url(one), in: regions) == isSame)
    }

    @Test("Schemes and ports must be equal")
    func ports() {
        let regions: Set = ["us-east-1"]
        #expect(!BucketRegion.isSameService(url("a.example"), url("a.example", port: 8443), in: regions))
        #expect(!BucketRegion.isSameService(url("a.example"), url("a.example", scheme: .http), in: regions))
    }

    @Test("The region replaces that of the host")
    func moves() {
        func moved(_ url: UpstreamURL) -> String { BucketRegion.moved(url, from: "us-east-1", to: "eu-west-1") }
        #expect(moved(url("b.s3.us-east-1.amazonaws.com")) == "https://b.s3.eu-west-1.amazonaws.com/k?v=1")
        #expect(moved(url("b.s3-us-east-1.amazonaws.com")) == "https://b.s3-eu-west-1.amazonaws.com/k?v=1")
        #expect(moved(url("127.0.0.1", port: 9000, scheme: .http)) == "http://127.0.0.1:9000/k?v=1")
        #expect(moved(url("::1", port: 80, scheme: .http)) == "http://[::1]/k?v=1")
    }

    @Test("Only a 301 or 307 states a region, and the region is a name")
    func statement() {
        let field: HeaderList = ["X-Amz-Bucket-Region": "EU-west-1"]
        #expect(BucketRegion.stated(status: 301, headers: field) == "eu-west-1")
        #expect(BucketRegion.stated(status: 307, headers: field) == "eu-west-1")
        for status in [200, 302, 308, 400, 403] { #expect(BucketRegion.stated(status: status, headers: field) == nil) }
        for value in ["", "a.b", "a/b", "a b", String(repeating: "a", count: 65)] {
            #expect(BucketRegion.stated(status: 301, headers: ["x-amz-bucket-region": value]) == nil)
        }
    }

    /// A response after a redirect with 301 that states a region.
    private func head(at url: String, region: String? = "eu-west-1") -> UpstreamHead {
        var head = UpstreamHead(status: 200, headers: [:], finalURL: url, redirects: 1)
        let fields: HeaderList = region.map { ["x-amz-bucket-region": $0] } ?? [:]
        head.earlier = [RedirectHead(status: 301, headers: fields)]
        return head
    }

    @Test("The endpoint of a region replaces the address of later requests")
    func endpoints() throws {
        let asked = "https://b.s3.amazonaws.com/a%20b?v=1"
        let endpoint = try #require(
            RegionalEndpoint(after: head(at: "https://b.s3.eu-west-1.amazonaws.com/a%20b?v=1"), to: asked))
        #expect(endpoint.region == "eu-west-1")
        #expect(endpoint.moved("https://b.s3.amazonaws.com/c") == "https://b.s3.eu-west-1.amazonaws.com/c")
        #expect(endpoint.moved("https://mirror.example/c") == nil)
        #expect(RegionalEndpoint(after: head(at: asked), to: asked)?.moved(asked) == asked)
    }

    @Test("A target that differs in more than its address, or states no region, is no endpoint")
    func noEndpoints() {
        let asked = "https://s3.amazonaws.com/b/k"
        #expect(RegionalEndpoint(after: head(at: "https://b.s3.eu-west-1.amazonaws.com/k"), to: asked) == nil)
        #expect(RegionalEndpoint(after: head(at: asked, region: nil), to: asked) == nil)
        #expect(RegionalEndpoint(after: UpstreamHead(status: 200, headers: [:], finalURL: asked), to: asked) == nil)
    }
}
