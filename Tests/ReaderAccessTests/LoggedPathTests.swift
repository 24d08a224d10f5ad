import CacheCore
import Testing

@testable import ReaderAccess

struct LoggedPathTests {
    /// A path token.
    private static let token: String = {
        let keys = try? SigningKeys(files: [.init(name: "k1", content: Array(String(repeating: "k", count: 32).utf8))])
        let order = SignatureRequest(
            path: "/o/media/show/", scope: .prefix, form: .path, expiresAt: Timestamp(seconds: 1_800_000_000))
        let url = try? keys?.sign(order).target
        return url.flatMap { $0.split(separator: "/").dropFirst().first }.map(String.init) ?? ""
    }()

    @Test(
        "A token is masked in every spelling of the path",
        arguments: [
            "/t/{}/o/media/a", "//t/{}/o/media/a", "/%74/{}/o/media/a", "/T/{}/o/media/a", "/%2574/{}/o/a",
            "/t//{}/o/a",
            "/t/./{}/o/a", "/t%2F{}/o/a", "/t/{}%2Fo%2Fa", "/t\\{}\\o", "/t;v=1/{}/o/a", "/proxy/t/{}/o/a", "/{}/o/a",
            "/o/media/t/{}/o/media/a", "/o/media/{}", "/t/{}x/o/media/a", "/x/{}/", "/o/media%2Ft%2F{}",
            "/t.{}", "/t:{}", "/t,{}", "/t={}", "/x-{}", "/o/media/a.mp4;t={}",
        ])
    func masked(_ pattern: String) {
        #expect(Self.token.utf8.count > 60)
        let path = LoggedPath.masked(pattern.replacing("{}", with: Self.token))
        #expect(path.contains(LoggedPath.mask) && !path.contains(Self.token.prefix(20)), "\(path)")
    }

    @Test(
        "Other paths stay as they are",
        arguments: [
            "/", "", "/o/media/a.mp4", "/v1/stats", "/o/media/t/0123456789abcdef0123456789abcdef.mp4",
            "/v1/assets/77032addc7f69d8e190713bfb213a2c9/content", "/o/media/AQEB" + String(repeating: "A", count: 80),
            "/t/short/o/a",
        ])
    func unchanged(_ path: String) { #expect(LoggedPath.masked(path) == path) }

    @Test("A package is masked, also where it is not accepted")
    func packages() {
        let package = "URISigningPackage=" + String(repeating: "a", count: 40) + ".b.c"
        let spellings = [
            "/o/media/a;\(package)", "/o/media;\(package)/a", "/x/%55\(package.dropFirst())",
            "/o/media/a;\(package.lowercased())",
        ]
        for path in spellings {
            #expect(!LoggedPath.masked(path).contains("aaaa"), "\(path)")
        }
    }

    @Test(
        "A JSON Web Token is masked in every segment",
        arguments: ["/v1/{}", "/o/media/{}/a.mp4", "/o/media/a.mp4;x={}"])
    func webTokens(pattern: String) {
        let token = "eyJhbGciOiJIUzI1NiJ9." + String(repeating: "a", count: 40) + ".b-c"
        #expect(!LoggedPath.masked(pattern.replacing("{}", with: token)).contains("aaaa"))
    }
}
