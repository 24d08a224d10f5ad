import TestChance
import Testing

@testable import ReaderAccess

struct ExtendedRegexTests {
    @Test(
        "Patterns match whole texts as POSIX defines",
        arguments: [
            ("abc", "abc", true), ("abc", "abcd", false), ("abc", "xabc", false), ("a.c", "a/c", true),
            ("a*", "", true),
            ("a*", "aaaa", true), ("a+", "", false), ("a+b?", "aa", true), ("(ab)+", "abab", true),
            ("(ab)+", "aba", false),
            ("a|bc", "bc", true), ("a|bc", "ac", false), ("(a|b)*c", "ababc", true), ("a{3}", "aaa", true),
            ("a{3}", "aa", false), ("a{2,}", "aaaaa", true), ("a{2,3}", "aaaa", false), ("a{0,1}b", "b", true),
            ("a{0}b", "b", true), ("a{0}b", "ab", false), ("a{1}", "a", true), ("[abc]", "b", true),
            ("[^abc]", "b", false),
            ("[^abc]", "/", true), ("[a-c]+", "abcd", false), ("[]a]", "]", true), ("[^]a]", "]", false),
            ("[a-]", "-", true),
            ("[-a]", "-", true), (#"[\]"#, "\\", true), ("[[:digit:]x]+", "12x", true), ("[[:alpha:]]", "1", false),
            ("[[:upper:][:digit:]]+", "A1", true), (#"\."#, ".", true), (#"\."#, "a", false), (#"\/\:"#, "/:", true),
            ("^a$", "a", true), ("a^b", "ab", false), ("(^a|b)c$", "ac", true), ("(a*)*", "aaa", true),
            ("(a*)+b", "b", true),
            ("(a|a)*", "aa", true), (".", "\u{E9}", false), ("..", "\u{E9}", true), ("}", "}", true), ("]", "]", true),
            ("a$|b", "b", true), ("((a)(b))", "ab", true), (".*x.*", "aaxaa", true),
        ] as [(String, String, Bool)])
    func matching(_ pattern: String, _ text: String, _ expected: Bool) throws {
        let regex = try #require(ExtendedRegex(pattern))
        #expect(regex.matches(text.utf8) == expected)
    }

    @Test(
        "Patterns that are invalid or undefined in POSIX are refused",
        arguments: [
            "", "(", ")", "()", "a|", "|a", "a||b", "(a", "a)", "*", "+a", "?a", "{1}", "a**", "a+?", "a*?", "a{1}{2}",
            "a{1}*", "a{2}+", "a{", "a{x}", "a{1", "a{1,", "a{2,1}", "a{256}", "a{1,256}", "a{,2}", "(*a)", "a|*b",
            "^*",
            "$+", "[", "[a", "[]", "[^]", "[z-a]", "[[:foo:]]", "[[.a.]]", "[[=a=]]", "[[:digit:", "[a-[:digit:]]",
            "\\",
            #"\d"#, #"\w+"#, #"\b"#, #"\1"#, #"(a)\1"#, "(?:a)", "(?=a)", "a{99999999999999999999}",
        ])
    func invalid(_ pattern: String) {
        #expect(ExtendedRegex(pattern) == nil)
    }

    @Test("Sizes are bounded: pattern, nesting, automaton and text")
    func limits() throws {
        #expect(ExtendedRegex(String(repeating: "a", count: 2048)) != nil)
        #expect(ExtendedRegex(String(repeating: "a", count: 2049)) == nil)
        #expect(ExtendedRegex(String(repeating: "(", count: 32) + "a" + String(repeating: ")", count: 32)) != nil)
        #expect(ExtendedRegex(String(repeating: "(", count: 33) + "a" + String(repeating: ")", count: 33)) == nil)
        #expect(ExtendedRegex("(a{255}){15}") != nil)
        #expect(ExtendedRegex("(a{255}){17}") == nil)
        #expect(ExtendedRegex("((a{255}){255}){255}") == nil)
        #expect(ExtendedRegex("((((((a{0}){255}){255}){255}){255}){255}){255}") == nil)
        let regex = try #require(ExtendedRegex("a*"))
        #expect(regex.matches(repeatElement(UInt8(ascii: "a"), count: 16 * 1024)))
        #expect(!regex.matches(repeatElement(UInt8(ascii: "a"), count: 16 * 1024 + 1)))
    }

    @Test("Patterns that make backtracking matchers exponential end within the step limit")
    func catastrophic() throws {
        let text = Array(String(repeating: "a", count: 2000).utf8) + [UInt8(ascii: "b")]
        for pattern in ["(a+)+", "(a|a)*", "(a*)*", "(a|aa)+", "(.*)*x", "(a?){200}a{200}"] {
            let regex = try #require(ExtendedRegex(pattern))
            #expect(!regex.matches(text), "\(pattern)")
        }
        let wide = try #require(ExtendedRegex("(.*a){255}(.*a){255}"))
        #expect(!wide.matches(repeatElement(UInt8(ascii: "a"), count: 16_000)))
    }

    @Test("An escaped text matches itself only")
    func escaping() throws {
        var (random, seed) = SeededRandom.announced()
        let characters = Array(#".[\()*+?{|^$}]-/:%aZ0 "#)
        for _ in 0..<500 {
            let text = String((0..<12).map { _ in characters[Int.random(in: 0..<characters.count, using: &random)] })
            let regex = try #require(ExtendedRegex(ExtendedRegex.escaped(text)), "seed \(seed)")
            #expect(regex.matches(text.utf8), "seed \(seed): \(text)")
            #expect(!regex.matches((text + "a").utf8))
            #expect(!regex.matches(text.dropLast().utf8))
        }
    }

    @Test("Random patterns agree with Swift's expressions, and never trap")
    func random() throws {
        var (random, seed) = SeededRandom.announced()
        let pieces = ["a", "b", ".", "(", ")", "|", "*", "+", "?", "{2}", "{1,2}", "[ab]", "[^a]", "(a|b)", "(ab)"]
        var compared = 0
        for _ in 0..<3000 {
            let pattern = (0..<Int.random(in: 1..<7, using: &random)).map { _ in
                pieces[Int.random(in: 0..<pieces.count, using: &random)]
            }.joined()
            guard let regex = ExtendedRegex(pattern) else { continue }
            let reference = try #require(try? Regex(pattern), "seed \(seed): \(pattern)")
            for _ in 0..<6 {
                let text = String(
                    (0..<Int.random(in: 0..<7, using: &random)).map { _ in "ab".randomElement(using: &random) ?? "a" })
                #expect(
                    regex.matches(text.utf8) == (text.wholeMatch(of: reference) != nil),
                    "seed \(seed): \(pattern) \(text)")
                compared += 1
            }
        }
        #expect(compared > 1000)
    }
}
