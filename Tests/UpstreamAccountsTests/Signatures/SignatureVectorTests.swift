import CacheCore
import Testing

@testable import UpstreamAccounts

/// Published examples of signatures.
@Suite struct SignatureVectorTests {
    /// A request of AWS's Signature Version 4 test suite. `Host` and `X-Amz-Date` are the same in all of them.
    struct Vector: Sendable, CustomTestStringConvertible {
        let name: String
        let method: String
        let target: String
        let fields: [(String, String)]
        let body: String
        let signature: String

        init(
            _ name: String, _ method: String, _ target: String, _ fields: [(String, String)], body: String,
            _ signature: String
        ) {
            self.name = name
            self.method = method
            self.target = target
            self.fields = fields
            self.body = body
            self.signature = signature
        }

        var testDescription: String { name }
    }

    @Test("The signature equals that of AWS's test suite", arguments: vectors)
    func testSuite(vector: Vector) throws {
        let keys = try AccessKeys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", nil, from: "The test")
        let halves = vector.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var headers: HeaderList = ["Host": "example.amazonaws.com", "X-Amz-Date": SignatureV4.date(TestClock.start)]
        for (name, value) in vector.fields { headers.append(name, value) }
        let request = SignatureV4.Request(
            method: vector.method, path: String(halves[0]),
            query: SignatureQuery(halves.count > 1 ? String(halves[1]) : nil), headers: headers,
            payload: .hashed(Array(vector.body.utf8)))

        let authorization = SignatureV4(keys: keys, region: "us-east-1", service: "service")
            .authorization(for: request, at: TestClock.start)

        let names = Set(headers.fields.map { $0.name.lowercased() }).sorted().joined(separator: ";")
        #expect(
            authorization
                == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
                + "SignedHeaders=\(names), Signature=\(vector.signature)")
    }

    @Test(
        "The signature equals that of the examples in the S3 documentation",
        arguments: [
            (
                "GET", "/test.txt", nil, ["Range": "bytes=0-9"], "",
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
            ),
            (
                "PUT", "/test%24file.text", nil,
                ["Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"],
                "Welcome to Amazon S3.", "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
            ),
            ("GET", "/", "lifecycle", [:], "", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
            (
                "GET", "/", "max-keys=2&prefix=J", [:], "",
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
            ),
        ] as [(String, String, String?, HeaderList, String, String)])
    func documentation(
        method: String, path: String, query: String?, fields: HeaderList, body: String, signature: String
    ) throws {
        let keys = try AccessKeys(
            "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", nil, from: "The test")
        let time = Timestamp(seconds: 1_369_353_600)
        let payload = SignatureV4.Payload.hashed(Array(body.utf8))
        var headers = fields
        headers.append("Host", "examplebucket.s3.amazonaws.com")
        headers.append("x-amz-content-sha256", payload.text)
        headers.append("x-amz-date", "20130524T000000Z")
        let request = SignatureV4.Request(
            method: method, path: path, query: SignatureQuery(query), headers: headers, payload: payload)

        let authorization = SignatureV4(keys: keys, region: "us-east-1", service: "s3")
            .authorization(for: request, at: time)

        #expect(authorization.hasSuffix("Signature=" + signature))
    }

    @Test("The canonical request and the string to sign of the S3 documentation are reproduced")
    func canonicalForm() throws {
        let keys = try AccessKeys("A", "s", nil, from: "The test")
        let signature = SignatureV4(keys: keys, region: "us-east-1", service: "s3")
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        let request = SignatureV4.Request(
            method: "GET", path: "/test.txt", query: SignatureQuery(nil),
            headers: [
                "Range": "bytes=0-9", "x-amz-date": "20130524T000000Z", "Host": "examplebucket.s3.amazonaws.com",
                "x-amz-content-sha256": empty,
            ], payload: .hashed([]))

        #expect(
            signature.canonical(request) == """
                GET
                /test.txt

                host:examplebucket.s3.amazonaws.com
                range:bytes=0-9
                x-amz-content-sha256:\(empty)
                x-amz-date:20130524T000000Z

                host;range;x-amz-content-sha256;x-amz-date
                \(empty)
                """)
        #expect(
            signature.stringToSign(for: request, at: Timestamp(seconds: 1_369_353_600)) == """
                AWS4-HMAC-SHA256
                20130524T000000Z
                20130524/us-east-1/s3/aws4_request
                7344ae5b7ee6c3e7e6b0fe0640412a37625d1fbfff95c48bbb2dc43964946972
                """)
    }

    private static let securityToken =
        "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YU"
        + "uwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8"
        + "YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2I"
        + "CCR/oLxBA=="

    static let vectors: [Vector] = [
        Vector(
            "get-header-key-duplicate", "GET", "/",
            [("My-Header1", "value2"), ("My-Header1", "value2"), ("My-Header1", "value1")], body: "",
            "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"),
        Vector(
            "get-header-value-multiline", "GET", "/", [("My-Header1", "value1\n  value2\n     value3")], body: "",
            "cfd34249e4b1c8d6b91ef74165d41a32e5fab3306300901bb65a51a73575eefd"),
        Vector(
            "get-header-value-order", "GET", "/",
            [("My-Header1", "value4"), ("My-Header1", "value1"), ("My-Header1", "value3"), ("My-Header1", "value2")],
            body: "",
            "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"),
        Vector(
            "get-header-value-trim", "GET", "/", [("My-Header1", " value1"), ("My-Header2", " \"a   b   c\"")],
            body: "",
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
        Vector(
            "get-unreserved", "GET", "/\(unreserved)", [], body: "",
            "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"),
        Vector(
            "get-utf8", "GET", "/ሴ", [], body: "",
            "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
        Vector(
            "get-vanilla-empty-query-key", "GET", "/?Param1=value1", [], body: "",
            "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"),
        Vector(
            "get-vanilla-query-order-encoded", "GET", "/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1", [], body: "",
            "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac"),
        Vector(
            "get-vanilla-query-order-key-case", "GET", "/?Param2=value2&Param1=value1", [], body: "",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
        Vector(
            "get-vanilla-query-order-key", "GET", "/?Param1=value2&Param1=Value1", [], body: "",
            "eedbc4e291e521cf13422ffca22be7d2eb8146eecf653089df300a15b2382bd1"),
        Vector(
            "get-vanilla-query-order-value", "GET", "/?Param1=value2&Param1=value1", [], body: "",
            "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694"),
        Vector(
            "get-vanilla-query-unreserved", "GET", "/?\(unreserved)=\(unreserved)", [], body: "",
            "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"),
        Vector(
            "get-vanilla-query", "GET", "/", [], body: "",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Vector(
            "get-vanilla-utf8-query", "GET", "/?ሴ=bar", [], body: "",
            "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
        Vector(
            "get-vanilla", "GET", "/", [], body: "",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Vector(
            "get-relative-relative", "GET", "/example1/example2/../..", [], body: "",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Vector(
            "get-relative", "GET", "/example/..", [], body: "",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Vector(
            "get-slash-dot-slash", "GET", "/./", [], body: "",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Vector(
            "get-slash-pointless-dot", "GET", "/./example", [], body: "",
            "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5"),
        Vector(
            "get-slash", "GET", "//", [], body: "",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Vector(
            "get-slashes", "GET", "//example//", [], body: "",
            "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"),
        Vector(
            "get-space", "GET", "/example space/", [], body: "",
            "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"),
        Vector(
            "get-special-character", "GET", "/example/$delete", [], body: "",
            "a853c9b21b528b19643d00910d35b83a10c366a10833ceefb45edd6c80e40f27"),
        Vector(
            "post-header-key-case", "POST", "/", [], body: "",
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        Vector(
            "post-header-key-sort", "POST", "/", [("My-Header1", "value1")], body: "",
            "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"),
        Vector(
            "post-header-value-case", "POST", "/", [("My-Header1", "VALUE1")], body: "",
            "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"),
        Vector(
            "post-sts-header-after", "POST", "/", [], body: "",
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        Vector(
            "post-sts-header-before", "POST", "/", [("X-Amz-Security-Token", securityToken)], body: "",
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"),
        Vector(
            "post-vanilla-empty-query-value", "POST", "/?Param1=value1", [], body: "",
            "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"),
        Vector(
            "post-vanilla-query", "POST", "/?Param1=value1", [], body: "",
            "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"),
        Vector(
            "post-vanilla", "POST", "/", [], body: "",
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        Vector(
            "post-x-www-form-urlencoded-parameters", "POST", "/",
            [("Content-Type", "application/x-www-form-urlencoded; charset=utf8")], body: "Param1=value1",
            "1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe"),
        Vector(
            "post-x-www-form-urlencoded", "POST", "/", [("Content-Type", "application/x-www-form-urlencoded")],
            body: "Param1=value1",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"),
    ]

    private static let unreserved = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
}
