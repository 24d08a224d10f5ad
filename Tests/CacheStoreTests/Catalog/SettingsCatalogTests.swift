import CacheCore
import CacheTestKit
import GRDB
import Testing

@testable import CacheStore

@Suite struct SettingsCatalogTests {
    /// Settings without any default value.
    private static var fullSettings: OriginSettings {
        var settings = OriginSettings(baseURL: "https://up.test/base")
        settings.headers = HeaderList([.init("Authorization", "Bearer x"), .init("X-A", "1"), .init("X-A", "2")])
        settings.freshness = .ttl(.milliseconds(1500))
        settings.keyQuery = .exclude(["sig", "expires"])
        settings.timeouts = TransferTimeouts(connect: .seconds(1), firstByte: nil, idle: .seconds(3), total: nil)
        settings.readTimeout = .milliseconds(700)
        settings.retries = 9
        settings.maxTransfers = 2
        settings.maxBytesPerSecond = 5000
        settings.readAheadBytes = 77
        settings.finishIfRemainingBytes = 78
        settings.finishIfRemainingPercent = 7
        settings.gapMergeBytes = 0
        settings.speculativeBytes = 79
        settings.mirrors = ["https://one.test/base", "https://two.test"]
        settings.redirectHosts = ["*.one.test"]
        settings.anticipatesIndex = false
        settings.propagatesTrace = false
        settings.hedging = true
        settings.circuitBreaker = nil
        settings.allowPrivateAddresses = true
        settings.tls = TLSSettings(caFile: "/ca.pem", verify: false)
        settings.access = .public
        settings.credentialsFile = "media.txt"
        settings.auth = fullAccount
        settings.resolution = fullResolution
        settings.forwarded = ["Authorization"]
        settings.sharesForwarded = true
        settings.cmcd = .key
        settings.trustValidators = .immutable
        settings.staleIfError = .milliseconds(2500)
        settings.negativeCaching = nil
        settings.requestDirectives = true
        settings.ignoreVary = ["User-Agent", "Origin"]
        settings.unknownLength = .partial
        settings.errorBodies = .upstream
        settings.isEncrypted = true
        settings.verification = .always
        settings.fallback = .asset(AssetID(high: 1, low: 2))
        settings.storeRules = .init(maxBytes: 5, never: ["video/*"], always: ["audio/mpeg"])
        settings.quota = .init(minBytes: 6, maxBytes: 7)
        return settings
    }

    private static var fullAccount: OriginAuth {
        var auth = OriginAuth()
        auth.kind = .s3
        auth.region = "eu-central-1"
        auth.service = "storage"
        auth.credentials = .assumeRole
        auth.accessKeyID = "key"
        auth.secretAccessKey = "secret"
        auth.sessionToken = "session"
        auth.file = "aws.txt"
        auth.profile = "media"
        auth.roleARN = "arn:aws:iam::1:role/media"
        auth.roleSessionName = "cache"
        auth.externalID = "external"
        auth.source = .static
        auth.stsURL = "https://sts.test"
        auth.metadataURL = "http://127.0.0.1:1338"
        auth.grant = .jwtBearer
        auth.tokenURL = "https://login.test/token"
        auth.scope = "read"
        auth.audience = "media"
        auth.scheme = .oauth
        return auth
    }

    private static var fullResolution: LinkResolution {
        var resolution = LinkResolution()
        resolution.url = "https://api.test/link?path={path}"
        resolution.method = .post
        resolution.body = #"{"path":"/{path}"}"#
        resolution.pointer = "/link"
        resolution.lifetime = .seconds(240)
        resolution.sendsCredentials = true
        resolution.hosts = ["*.storage.test"]
        resolution.list.url = "https://api.test/list?path={path}"
        resolution.list.method = .post
        resolution.list.body = #"{"path":"{/path}"}"#
        (resolution.list.pointer, resolution.list.name, resolution.list.path) = ("/entries", "/title", "/id")
        (resolution.list.query, resolution.list.size, resolution.list.modified) = ("alt=media", "/bytes", "/at")
        (resolution.list.type, resolution.list.folder) = ("/kind", "folder")
        (resolution.list.cursor, resolution.list.more) = ("/cursor", "/has_more")
        (resolution.list.nextURL, resolution.list.nextBody) = ("{cursor}", #"{"cursor":"{cursor}"}"#)
        return resolution
    }

    /// The settings of an origin in the encoding of the first release.
    private static let firstText = """
        {"access":"public","allowPrivateAddresses":true,"baseURL":"https://up.test/base","caFile":"/ca.pem",\
        "finishIfRemainingBytes":78,"freshnessTTL":1500,"headers":[["X-A","1"]],\
        "keyQuery":{"kind":"exclude","names":["sig"]},"maxBytesPerSecond":5000,"maxTransfers":2,"readAheadBytes":77,\
        "readTimeout":700,"retries":9,"timeouts":{"connect":1000,"idle":3000},"verify":false}
        """

    @Test("Origins stored by the first release load with defaults for new fields")
    func originsThatTheFirstReleaseKeptOpenWithDefaultsForTheRest() throws {
        let settings = try StoredSettings.origin(Self.firstText)

        var expected = OriginSettings(baseURL: "https://up.test/base")
        expected.headers = ["X-A": "1"]
        expected.freshness = .ttl(.milliseconds(1500))
        expected.keyQuery = .exclude(["sig"])
        expected.timeouts = TransferTimeouts(connect: .seconds(1), firstByte: nil, idle: .seconds(3), total: nil)
        expected.readTimeout = .milliseconds(700)
        expected.retries = 9
        expected.maxTransfers = 2
        expected.maxBytesPerSecond = 5000
        expected.readAheadBytes = 77
        expected.finishIfRemainingBytes = 78
        expected.allowPrivateAddresses = true
        expected.tls = TLSSettings(caFile: "/ca.pem", verify: false)
        expected.access = .public
        #expect(settings == expected)
    }

    @Test(
        "A stored origin with an invalid member is reported as corrupt",
        arguments: [
            #""freshness":{"ttl":5}"#, #""trustValidators":"weak""#, #""unknownLength":"206""#,
            #""fallbackAsset":"xyz""#,
            #""circuitBreaker":{"failures":"5"}"#,
        ])
    func aTextThatSaysWhatNobodyWroteIsCorrupt(member: String) throws {
        let text = Self.firstText.dropLast() + "," + member + "}"
        let error = #expect(throws: CacheError.self) {
            try StoredSettings.origin(String(text))
        }
        #expect(error?.code == .storageCorrupt)
    }

    @Test(
        "Freshness settings round-trip",
        arguments: [OriginSettings.Freshness.respect, .explicit, .ttl(.zero), .ttl(.seconds(5))])
    func freshnessComesBack(freshness: OriginSettings.Freshness) async throws {
        let catalog = try TestStore().store.catalog
        var settings = OriginSettings(baseURL: "https://up.test")
        settings.freshness = freshness
        settings.fallback = .file("a/b.mp4")
        settings.circuitBreaker = .init(failures: 3, pause: .milliseconds(1500))

        _ = try await catalog.saveOrigin(Origin(name: "a", settings: settings))

        #expect(try await catalog.origin("a")?.value.settings == settings)
    }

    @Test("Every field of an origin round-trips")
    func everyFieldOfAnOriginComesBack() async throws {
        let catalog = try TestStore().store.catalog
        for (name, value) in Mirror(reflecting: Self.fullSettings).children {
            let usual = Mirror(reflecting: OriginSettings(baseURL: "")).children.first { $0.label == name }
            #expect("\(value)" != usual.map { "\($0.value)" }, "\(name ?? "") must not have its default in this test")
        }

        let revision = try await catalog.saveOrigin(Origin(name: "b", settings: Self.fullSettings))
        _ = try await catalog.saveOrigin(Origin(name: "a", settings: OriginSettings(baseURL: "http://plain.test")))

        let origins = try await catalog.origins()
        #expect(origins.map(\.value.name) == ["a", "b"])
        #expect(origins.map(\.value.settings) == [OriginSettings(baseURL: "http://plain.test"), Self.fullSettings])
        #expect(origins[1].revision == revision)
        #expect(try await catalog.origin("c")?.revision == nil)
    }

    @Test(
        "Key query rules round-trip",
        arguments: [
            OriginSettings.KeyQuery.all, OriginSettings.KeyQuery.none, .include([]), .include(["v"]), .exclude(["s"]),
        ])
    func keyRulesComeBack(rule: OriginSettings.KeyQuery) async throws {
        let catalog = try TestStore().store.catalog
        var settings = OriginSettings(baseURL: "https://up.test")
        settings.keyQuery = rule

        _ = try await catalog.saveOrigin(Origin(name: "a", settings: settings))

        #expect(try await catalog.origin("a")?.value.settings.keyQuery == rule)
    }

    @Test("A change fails if its precondition is not met")
    func aChangeNeedsThePreconditionItNames() async throws {
        let catalog = try TestStore().store.catalog
        let origin = Origin(name: "a", settings: OriginSettings(baseURL: "https://up.test"))

        func refused(_ change: () async throws -> Void) async {
            let error = await #expect(throws: CacheError.self) { try await change() }
            #expect(error?.code == .preconditionFailed)
        }

        await refused { _ = try await catalog.saveOrigin(origin, if: .exists) }
        await refused { _ = try await catalog.saveOrigin(origin, if: .revision(1)) }
        let first = try await catalog.saveOrigin(origin, if: .absent)
        await refused { _ = try await catalog.saveOrigin(origin, if: .absent) }
        let second = try await catalog.saveOrigin(origin, if: .revision(first))
        #expect(second > first)
        await refused { _ = try await catalog.deleteOrigin("a", if: .revision(first)) }
        #expect(try await catalog.deleteOrigin("a", if: .revision(second)))
        #expect(try await !catalog.deleteOrigin("a"))
        #expect(try await catalog.saveOrigin(origin) > second, "A revision number must not be reused.")
    }

    @Test("The policy is restored after reopening")
    func thePolicyComesBackAfterAReopening() async throws {
        let directory = try TemporaryDirectory()
        let policy = PolicySettings(
            capacityBytes: nil, highWatermark: 0.7, lowWatermark: 0.6, minFreeDiskBytes: 5, algorithm: .gdsf,
            maxIdle: .seconds(3), maxAge: .milliseconds(4500), grace: .seconds(1),
            tagQuotas: ["a": Quota(minBytes: 6), "b.c": Quota(maxBytes: 7)])
        let revision = try await {
            let testStore = try TestStore(in: directory)
            let catalog = testStore.store.catalog
            #expect(try await catalog.policy()?.revision == nil)
            _ = try await catalog.savePolicy(PolicySettings(), if: .absent)
            let revision = try await catalog.savePolicy(policy)
            try testStore.store.close()
            return revision
        }()

        let kept = try #require(try await TestStore(in: directory).store.catalog.policy())

        #expect(kept.value == policy)
        #expect(kept.revision == revision)
    }

    @Test("Tokens of the API have revisions, and survive a restart and a state of a fleet")
    func tokensAreKept() async throws {
        let directory = try TemporaryDirectory()
        let second = try await {
            let testStore = try TestStore(in: directory)
            let catalog = testStore.store.catalog
            let first = try #require(try await catalog.saveToken("a", "1", if: .absent).tokens["a"]?.revision)
            await #expect(throws: CacheError.self) { try await catalog.saveToken("a", "2", if: .absent) }
            let stored = try await catalog.saveToken("a", "2", if: .revision(first))
            let second = try #require(stored.tokens["a"]?.revision)
            await #expect(throws: CacheError.self) { try await catalog.deleteToken("a", if: .revision(first)) }
            let more = try await catalog.saveToken("gone", "3", if: .none)
            let fewer = try await catalog.deleteToken("gone", if: .exists)
            #expect(stored.version < more.version && more.version < fewer.version && fewer.tokens == stored.tokens)
            try testStore.store.close()
            return second
        }()
        let catalog = try TestStore(in: directory).store.catalog
        #expect(
            try await catalog.tokens().tokens.values.map(\.self) == [
                StoredToken(id: "a", document: "2", revision: second)
            ])

        var record = FleetRecord(fleet: "f", identity: "i", store: "s", purges: 0, purgeID: "")
        record.tokens = ["b": 900]
        var changes = FleetChanges()
        changes.tokens = [StoredToken(id: "b", document: "4", revision: 900)]
        changes.removedTokens = ["a"]
        try await catalog.apply(record, changes)
        #expect(try await catalog.tokens().tokens.values.map(\.self) == changes.tokens)
        #expect(try await catalog.fleetRecord() == record)
        // Revisions go on behind that of the fleet.
        #expect(try await catalog.saveToken("c", "5", if: .absent).tokens["c"]?.revision ?? 0 > 900)
    }

    @Test("A record of a fleet from before tokens is read")
    func earlierFleetRecordsAreRead() async throws {
        let catalog = try TestStore().store.catalog
        let text =
            #"{"fleet":"f","identity":"i","store":"s","purges":3,"purgeID":"p","origins":{"media":7},"policy":2}"#
        try await catalog.write { db in
            try db.execute(sql: "INSERT INTO meta (name, value) VALUES ('fleet', ?)", arguments: [text])
        }
        let record = try await catalog.fleetRecord()
        #expect(record?.purges == 3 && record?.origins == ["media": 7] && record?.tokens == nil)
    }

    @Test("Minutes are stored, and old minutes are pruned")
    func minutesAreKeptAndOldMinutesForgotten() async throws {
        let catalog = try TestStore().store.catalog
        let minutes = [(60, ""), (60, "media"), (120, ""), (180, "media")].map {
            StatisticsMinute(at: Timestamp(seconds: $0.0), origin: $0.1, counters: "{\"n\":\($0.0)}")
        }

        try await catalog.saveStatistics(minutes: minutes)
        try await catalog.appendMinute(at: Timestamp(seconds: 120), origin: "", counters: "again")

        #expect(try await catalog.minutes(since: Timestamp(seconds: 60), origin: "media") == [minutes[1], minutes[3]])
        try await catalog.pruneMinutes(before: Timestamp(seconds: 120))
        #expect(
            try await catalog.minutes(since: Timestamp(seconds: 0)).map(\.counters) == ["again", minutes[3].counters])
    }
}
