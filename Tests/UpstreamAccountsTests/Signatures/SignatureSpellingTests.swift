import CacheCore
import Testing
import UpstreamAccounts

/// Spellings of paths and queries. The expected signatures were computed with botocore 1.44.8 (`S3SigV4Auth` with an
/// unsigned payload, `SigV4Auth`) for the URL in the second column.
@Suite struct SignatureSpellingTests {
    private static func account(_ service: String, token: String? = nil) -> TestAccount {
        TestAccount {
            $0.kind = .s3
            $0.credentials = .static
            $0.accessKeyID = "AKIDEXAMPLE"
            $0.secretAccessKey = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
            $0.sessionToken = token
            $0.region = "eu-central-1"
            $0.service = service
        }
    }

    @Test("A path for S3 is sent and signed with the same strict encoding", arguments: paths)
    func pathForS3(path: String, sent: String, signature: String) async throws {
        let test = Self.account("s3", token: "TOKEN/+=")
        try await test.refresh()

        let request = try test.authorize("GET", "https://media.example:8443" + path, ["Range": "bytes=0-9"])

        #expect(request.url.path == sent)
        #expect(request.url.text == "https://media.example:8443" + sent)
        #expect(request.signature == signature)
    }

    @Test("A query for S3 is sent and signed with the same strict encoding", arguments: queries)
    func queryForS3(query: String, sent: String?, signature: String) async throws {
        let test = Self.account("s3")
        try await test.refresh()

        let request = try test.authorize("GET", "https://media.example/k?" + query)

        #expect(request.url.query == sent)
        #expect(request.url.text == "https://media.example/k" + (sent.map { "?" + $0 } ?? ""))
        #expect(request.signature == signature)
    }

    @Test("A path for another service is sent unchanged, and signed normalized and encoded again", arguments: others)
    func pathForAnotherService(path: String, signature: String) async throws {
        let test = Self.account("execute-api")
        try await test.refresh()

        let request = try test.authorize(
            "POST", "https://api.example" + path, ["Content-Type": "text/plain"], body: Array("body".utf8))

        #expect(request.url.path == path)
        #expect(request.signature == signature)
        #expect(request.headers["X-Amz-Content-Sha256"] == nil)
    }

    static let paths: [(String, String, String)] = [
        ("/", "/", "5f4856cd8042fcf6f67022d2b982dba4b7e41f1b7ec8da3179f8d1120f18b4b0"),
        ("/a", "/a", "04a832dba462a182bcd73541ab3fdeeaf62685d91c99a699ff11aebc97b93374"),
        ("/a/", "/a/", "36e8d7e6a24d7269b1ded37d6fa14fdda912afcb5e1c706377537d1c39e5a4af"),
        ("/a/b.mp4", "/a/b.mp4", "7272163b8824a05a4f29d8ef155d8b4c2e4f2adc67f055558fce3cb3fdf975b1"),
        ("/a b", "/a%20b", "d558d6ebea8f6d0b13c28be4c5ea8f5eca2fc10a1452cf5951e4a4d01e5eb4bf"),
        ("/a%20b", "/a%20b", "d558d6ebea8f6d0b13c28be4c5ea8f5eca2fc10a1452cf5951e4a4d01e5eb4bf"),
        ("/a+b", "/a%2Bb", "a81a271928ce8647719b420b0bd4ec439a39edfffd584f6e4e07ceeb31df7f89"),
        ("/a%2Bb", "/a%2Bb", "a81a271928ce8647719b420b0bd4ec439a39edfffd584f6e4e07ceeb31df7f89"),
        ("/a=b", "/a%3Db", "b99e852e0bcd45b045f67f85da0689e29a4e11e39a226ae1935c2544e650c2f7"),
        ("/a%3Db", "/a%3Db", "b99e852e0bcd45b045f67f85da0689e29a4e11e39a226ae1935c2544e650c2f7"),
        ("/a&b", "/a%26b", "b4a6b8b838da54063a45b8223886e8e4d806598dea1e65c761b39e076db48ca8"),
        ("/a%26b", "/a%26b", "b4a6b8b838da54063a45b8223886e8e4d806598dea1e65c761b39e076db48ca8"),
        ("/a;b", "/a%3Bb", "63f39e9a3bd034665556457205745c94fc5a43f237ac2c6a6e02d94b76b4dc66"),
        ("/a,b", "/a%2Cb", "d00c763d79d708bf29567a58028e1fc01896ea212f075980a05e8c65b6c1f2d2"),
        ("/a:b", "/a%3Ab", "d764af3e46a240b244e7218a865a553d07a875b067e881303c5a08dfc71ad709"),
        ("/a@b", "/a%40b", "6e380b2ca83709a7ae825cb67d4a4e7d11c18fd8e8f34a0defa6ce0e2e0bd507"),
        ("/a$b", "/a%24b", "05578cb10a1dd9bcf2c68f037f67ad536094a27cffdb04e74643b86c04985c91"),
        ("/a!b", "/a%21b", "1ae25379960bac24775ddc1faed71e093413d1387398668c693606036397a75c"),
        ("/a*b", "/a%2Ab", "e6f99dac0e679f35d7483e0b3a7f1ba64e2d8bd8d9a32ffedefbc580127db699"),
        ("/a'b", "/a%27b", "d5ccfcf64f4d119a15a772baff8620471d736e879ddcf53a5906281500476c50"),
        ("/a(b)", "/a%28b%29", "2328374ead1f465cce65bbd1d6c57b89f4f0ea4847b43f433c4a397cad080fac"),
        ("/a%28b%29", "/a%28b%29", "2328374ead1f465cce65bbd1d6c57b89f4f0ea4847b43f433c4a397cad080fac"),
        ("/a~b", "/a~b", "32bc0a8524d2cb1382d8a9d098f1345851247f15081db2474fd667794fe654db"),
        ("/a%7Eb", "/a~b", "32bc0a8524d2cb1382d8a9d098f1345851247f15081db2474fd667794fe654db"),
        ("/a-._b", "/a-._b", "ca47d5824cb2eff3dd926df3d7dcece2b44ebf24c0538585f51c577965efd762"),
        ("/a%2Fb", "/a%2Fb", "fe4b1d409c8b077bc45185b93b7e63ca32b3ed37187f9cab5cc1f5b5804c61d2"),
        ("/a%2fb", "/a%2Fb", "fe4b1d409c8b077bc45185b93b7e63ca32b3ed37187f9cab5cc1f5b5804c61d2"),
        ("/a%25b", "/a%25b", "529f3ff016d4d40f6c64efa172b61ec905d74b6464d05e8c5cf752f129245fdc"),
        ("/a%252Fb", "/a%252Fb", "e42f4c7afe90612bc85cc54e460db72e05a08ad22d6300a5f159236873444b8b"),
        ("/%E1%88%B4", "/%E1%88%B4", "6215214549170f202eebc1b10cd85076075bbff496da5d43a8369113526aa6a0"),
        ("/%e1%88%b4", "/%E1%88%B4", "6215214549170f202eebc1b10cd85076075bbff496da5d43a8369113526aa6a0"),
        ("/ሴ", "/%E1%88%B4", "6215214549170f202eebc1b10cd85076075bbff496da5d43a8369113526aa6a0"),
        (
            "/Stra%C3%9Fe/%F0%9F%8E%AC.mkv", "/Stra%C3%9Fe/%F0%9F%8E%AC.mkv",
            "04043fffac361c4b67b259cf51976a4bb5d23d43dc523632e7bcd6ce4a387b17"
        ),
        ("/%FF", "/%FF", "c1ca0f39be3bf28cb0f234c61862f039b80ece80311f6580f87ce3378784ae4f"),
        ("/a//b", "/a//b", "b49e6660711940df4d0f9bbddbe237c088cc8b8aa264a4170539bec7d619d3dc"),
        ("//a", "//a", "d8db6d8eaef5fd54de217a2d3b6035899defe15c06ae511df38e39c32af36304"),
        ("/a//", "/a//", "1417372289a5bdf2778028784e46644a731d380ce6e7f1b8eea40c846acb11ba"),
        ("/.../a", "/.../a", "37e9ad11ce68692576b6355d037e5c15c092d5dc4e151fb40a8fca3dda55552d"),
        ("/a...", "/a...", "25aa66825f43e27f50611352925210dea5ec650c14dd046583386eb9022f56de"),
        ("/.hidden", "/.hidden", "bb612b1ea082799e0130fe85853ba81add01ad8061ffc1705812d17d015a8467"),
        ("/a%2E%2Eb", "/a..b", "783728f8137ca132183bd9b5f586bb1502d8c7dea19716e1b5972afaf2425dd0"),
        ("/a%3Fb", "/a%3Fb", "f9d987aef934484e248a0ab098ac8f8f19125a682fb3ec6ce9e5d0104f25e7ae"),
        ("/a%23b", "/a%23b", "bb3f4fbc135b1fdce77563b827f78b7a404d4ec74d6a3ac12210bb386f82f9f0"),
        ("/a%5Bb%5D", "/a%5Bb%5D", "e6efcbd0699039b439a9840bfe9d41ffb61e4b6e4b87868a65e6cf2c78449aa5"),
        ("/a^b", "/a%5Eb", "87433350c8386c2bbf4ee63cb63efda8055bf588a07fc76aeaeacd71abc06ce4"),
        ("/a%7Cb", "/a%7Cb", "98e8fc4d47d3ef3e6e6a7eafac3bbae508477b8dff0204aa282f18c16d8d8394"),
        ("/a\"b", "/a%22b", "4f8077ca021f3e57fcea4ac2cdf5a56425ada162323fd089c38eecc7e843b7b5"),
        ("/a%0Ab", "/a%0Ab", "2539cd1b65063f4b072010e806d51107459746090558eade96e5b3c82dd50475"),
        ("/%41%2d", "/A-", "0e704b2cf93b01b565ee2f87d6c402419e665dfdc609fa288e475bce9e232373"),
        ("/a/%2E%2E/b", "/a/%2E%2E/b", "33e022bc28262be104af10eb57e00a74950f60f0c06bb78e72886a38841276cb"),
        ("/%2e/b", "/%2e/b", "163ef70df3c5b7f81ae6d0b55a7bceab26b07f622ee01e2ea7ecdd64ab28ba64"),
    ]

    static let queries: [(String, String?, String)] = [
        ("a", "a", "72c1820598d0647d9f267929a6476727ef575459e3ab579cfe3943b3c178d74d"),
        ("a=", "a=", "72c1820598d0647d9f267929a6476727ef575459e3ab579cfe3943b3c178d74d"),
        ("a&b=1", "a&b=1", "f0bf8796bf7b38beddea6126fff465af4680c301c87ba457de93e544cfe719a9"),
        ("b=2&a=1", "b=2&a=1", "9ac34bd5f02152d068f49426b53ed3ffd8c742aea44aa6c1361e6a001daf7724"),
        ("a=2&a=1", "a=2&a=1", "ce867a9a5ae3568708af3af475f4cbfe2a880fcc463cb401619004cf32990400"),
        ("a=b+c", "a=b%20c", "84ddb30f1543c19ff1bd033acbc1a4a86bd6dd08da9187ff5da060844c367708"),
        ("a=b%20c", "a=b%20c", "84ddb30f1543c19ff1bd033acbc1a4a86bd6dd08da9187ff5da060844c367708"),
        ("A=1&a=2", "A=1&a=2", "3b779266cd890b71de2d596ef0dae7f29eeecc58dcfe8bd5b63dff5f7d430e91"),
        ("x=%2f", "x=%2F", "ffe7bac2c2c61f2650cfa3947a16a3354fea654340b6739166df88bc81de92e4"),
        ("x=/?:", "x=%2F%3F%3A", "ee89181479952c59a44649169577fefa932bcf2efdb21aff38a25c842ce301e8"),
        ("a=b=c", "a=b%3Dc", "2a195a9e026222770389c70d7ed2de57a20693fafa8b0c6f3a879f46f271d36c"),
        ("a&&b", "a&b", "a11231eb1fc0d9904e001e00f76da01bdeb49d3efcaaba300a385c4242a7bee8"),
        ("&", nil, "e66010bdb10a4d729bdaab05eb104e6565a5794fe04b3e130b436c2d4a2c6511"),
        (
            "versionId=3%2FL4kqtJlcpXroDTDmJ+rmSpXd3dIbrHY", "versionId=3%2FL4kqtJlcpXroDTDmJ%20rmSpXd3dIbrHY",
            "aab331ee73356da4a363927dc23bd2e0e73ab931f21bbe2e7601989a5aee2ba1"
        ),
        ("x=ü", "x=%C3%BC", "a836e43ada10eae62ae28a67cc88560f4ac42ecf0f33a2caaabb8c42420cfa99"),
        (
            "list-type=2&prefix=J%26K", "list-type=2&prefix=J%26K",
            "64d955ce1e41f09136d35679da3bdc1df66bdc8b6c0c1115252d28b940c9cf55"
        ),
        (
            "a.b=1&a-b=2&a%20b=3", "a.b=1&a-b=2&a%20b=3",
            "2ce58509e03393b4d707e01296e79532e6b246dc9223af6f4d6c4be152471c2f"
        ),
        ("%61=1", "a=1", "624b8d3f7552b989e06e89526c1540627d6f3a9a1e5a2ec094d951cf3b8348de"),
    ]

    static let others: [(String, String)] = [
        ("/", "f1ed37287ef4ad86c7ff6db72f9ab9b72a31f69b6b3553fc1aae8f75a0e5c0fe"),
        ("/a", "44555be94436c82ccce2e13c47cae2989156908bf18ee549eb020f57a526947e"),
        ("/a/", "d24d559af4c1a36f325a1a0a37fca63791ecd65741e2cc05317d969881fccd6d"),
        ("/a%20b", "5b25950478463165c793dc4861ca9736f88269797cf4a6709652c9b59185cedd"),
        ("/a+b", "fa5a9b4fe2580e6a62ed5fab356ddc7fffe57ddd411bc7b6e4d871e0af0cb47a"),
        ("/a%2Fb", "dde8e3ac46867a18a2312bf13910828bc1fca1b0a420dbb7e7106a2ab0bff865"),
        ("/a%252Fb", "985fef9f2ddc020a00a2d4ac2c9939650b3fca057ed9121be249c288a2e0e9a5"),
        ("/%E1%88%B4", "df92bd8945c16bb891c84a11f9e01e92927767afbc20a44a09b166c79bd3b196"),
        ("/a//b", "8e6bb82af7794802f8f46eff682a21a62b03f4754a067f19b4e1ada4b309d113"),
        ("/a/./b", "8e6bb82af7794802f8f46eff682a21a62b03f4754a067f19b4e1ada4b309d113"),
        ("/a/../b", "adac17025170db65f983af2e08f507816ba1097243a133935f5fc559cd6577c6"),
        ("/a/..", "f1ed37287ef4ad86c7ff6db72f9ab9b72a31f69b6b3553fc1aae8f75a0e5c0fe"),
        ("/../a", "44555be94436c82ccce2e13c47cae2989156908bf18ee549eb020f57a526947e"),
        ("/a=b;c", "6b88fcbda72247daa8d4c4e9313ad746ec5801a2c9492234ab60d4e05c74e1a3"),
        ("/a~b", "e28da977dac21c43bbb93bcf6e8e8aff2203a6ad7a099a032addb7c819a8773f"),
    ]
}
