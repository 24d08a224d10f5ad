import Testing

@testable import CacheAPI

@Suite struct RouteTableTests {
    @Test(
        "A path has the most literal pattern that matches",
        arguments: [
            ("/v1/assets/usage", "/v1/assets/usage"), ("/v1/assets/x", "/v1/assets/{assetId}"),
            ("/v1/assets/x/content", "/v1/assets/{assetId}/content"), ("/v1//stats/", "/v1/stats"),
        ])
    func patterns(path: String, pattern: String) {
        #expect(RouteTable.pattern(of: path)?.text == pattern)
    }

    @Test(
        "Empty segments are part of the paths of content",
        arguments: [
            ("/o/media/a", true), ("/o/media//a", true), ("/o//media/a", true), ("//o/media/a", false),
            ("/o/media/", false), ("/o/media", false), ("//v1/content", false), ("/v1/content", true),
        ])
    func contentPaths(path: String, isKnown: Bool) {
        #expect((RouteTable.pattern(of: path) != nil) == isKnown)
        #expect((ContentTarget(path) != nil) == isKnown)
    }
}
