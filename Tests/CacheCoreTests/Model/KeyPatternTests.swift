import CacheCore
import Testing

struct KeyPatternTests {
    @Test(
        "Matches like a glob over paths",
        arguments: [
            ("/o/m/a.ts", "/o/m/a.ts", true), ("/o/m/a.ts", "/o/m/a.tsx", false), ("/o/m/*.ts", "/o/m/a.ts", true),
            ("/o/m/*.ts", "/o/m/.ts", true), ("/o/m/*.ts", "/o/m/d/a.ts", false), ("/o/m/**.ts", "/o/m/d/a.ts", true),
            ("/o/m/**", "/o/m/", true), ("/o/m/**", "/o/mm/a", false), ("**", "", true), ("**", "any/thing", true),
            ("*", "a/b", false), ("*", "ab", true), ("/o/**/a.ts", "/o/a.ts", true),
            ("/o/**/a.ts", "/o/x/y/a.ts", true),
            ("/o/**/a.ts", "/o/xa.ts", false), ("/o/**/a.ts", "/o/x/ba.ts", false), ("**/a", "a", true),
            ("**/a", "x/a", true), ("**/a", "xa", false), ("/o/m/s*/seg-*.m4s", "/o/m/s01/seg-7.m4s", true),
            ("/o/m/**/**/x", "/o/m/x", true), ("a**b", "a/x/b", true), ("a***b", "a/b", true), (#"a\*b"#, "a*b", true),
            (#"a\*b"#, "axb", false),
            (#"a\\"#, #"a\"#, true), ("a?c", "abc", false), ("a?c", "a?c", true), ("[ab]", "a", false),
            ("é*", "été", true),
            ("è*", "été", false),
            ("ét*", "été", true), ("*/*/*", "a/b/c", true), ("*/*/*", "a/b", false),
        ] as [(String, String, Bool)])
    func matchesAsAGlobOverPaths(pattern: String, key: String, isMatch: Bool) throws {
        let found = try #require(KeyPattern(pattern))
        #expect(found.matches(key) == isMatch)
        if isMatch { #expect(key.hasPrefix(found.prefix)) }
    }

    @Test("Invalid patterns are rejected")
    func patternsWithoutASenseAreRefused() {
        #expect(KeyPattern("") == nil)
        #expect(KeyPattern(#"a\"#) == nil)
        #expect(KeyPattern(String(repeating: "a", count: 2049)) == nil)
        #expect(KeyPattern(String(repeating: "a", count: 2048)) != nil)
    }

    /// A matcher that tries every choice takes exponential time for many stars.
    @Test("A pattern with many stars matches in bounded time", .timeLimit(.minutes(1)))
    func manyStarsTakeNoLongTime() throws {
        let pattern = try #require(KeyPattern(String(repeating: "*a**/", count: 100) + "b"))
        #expect(!pattern.matches(String(repeating: "a/", count: 500)))
    }
}
