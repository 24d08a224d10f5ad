import CacheCore
import Testing

@Suite struct ContentLimitsTests {
    private let limits = ContentLimits(prefixes: ["/o/media/public/"])

    @Test(
        "A path below a mount is compared in its normal form",
        arguments: [
            ("public/a.ts", true), ("/public/a.ts?x=1", true), ("%70ublic/a.ts", true), ("x/../public/a.ts", true),
            ("secret/a.ts", false), ("public/../secret/a.ts", false), ("public/%2e%2e/secret/a.ts", false),
            ("PUBLIC/a.ts", false), ("public", false), ("a.ts?/o/media/public/", false),
        ])
    func pathsAreNormalised(path: String, isInside: Bool) throws {
        #expect(try limits.permits(origin: "media", path: path) == isInside)
        #expect(try !limits.permits(origin: "other", path: path))
    }

    @Test(
        "An origin can be inside the limits if a prefix lies below its mount, or contains it",
        arguments: [
            (ContentLimits(), true), (ContentLimits(origins: ["media"]), true), (ContentLimits(origins: ["x"]), false),
            (ContentLimits(prefixes: ["/o/media/a/"]), true), (ContentLimits(prefixes: ["/o/"]), true),
            (ContentLimits(prefixes: ["/o/media2/"]), false), (ContentLimits(prefixes: []), false),
        ])
    func originsOfLimits(limits: ContentLimits, isPossible: Bool) {
        #expect(limits.mayPermit(origin: "media") == isPossible)
    }

    @Test("A limited token names assets by origin and path, or by a known identifier inside its limits")
    func references() async throws {
        let owner = TokenOwner(id: "team", limits: limits)
        let (inside, outside) = (AssetID(high: 1, low: 1), AssetID(high: 2, low: 2))
        func isPermitted(_ reference: AssetReference) async -> Bool {
            do throws(CacheError) {
                try await owner.check(reference) { id throws(CacheError) in
                    id == inside ? "/o/media/public/a.ts" : id == outside ? "/o/media/secret/a.ts" : nil
                }
                return true
            } catch {
                #expect(error.code == .tokenScope)
                return false
            }
        }
        #expect(await isPermitted(.mounted(origin: "media", path: "public/a.ts", key: nil)))
        #expect(await isPermitted(.known(inside)))
        #expect(await !isPermitted(.mounted(origin: "media", path: "public/a.ts", key: "k")))
        #expect(await !isPermitted(.known(outside)))
        #expect(await !isPermitted(.known(AssetID(high: 3, low: 3))))
        #expect(await !isPermitted(.url("http://a.example/o/media/public/a.ts", key: nil)))
    }
}
