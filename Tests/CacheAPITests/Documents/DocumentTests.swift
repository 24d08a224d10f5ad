@testable import CacheAPI
import CacheCore
import CacheEngine
import Testing

@Suite struct DocumentTests {
    private func field(_ body: () throws -> Void) -> String? {
        do {
            try body()
            return nil
        } catch {
            if case .invalidField(let name)? = (error as? CacheError)?.code { return name }
            return "\(error)"
        }
    }

    @Test("A policy patch keeps absent fields, and null removes a limit")
    func aPolicyPatchLeavesOtherFieldsAndTakesNullForNoLimit() throws {
        let present = PolicySettings(capacityBytes: 1 << 30, maxIdle: .seconds(60))
        let merged = try present.merging(["capacityBytes": .null, "lowWatermark": .number(0.5)])
        #expect(merged.capacityBytes == nil)
        #expect(merged.lowWatermark == 0.5)
        #expect(merged.highWatermark == present.highWatermark && merged.maxIdle == .seconds(60))
        #expect(try present.merging(.object([])) == present)
        #expect(PolicySettings().algorithm == .s3fifo)
        #expect(try present.merging(["admission": ["minUses": 3]]).minUses == 3)
        for algorithm in EvictionAlgorithm.allCases {
            let told = try present.merging(["algorithm": .string(algorithm.rawValue)]).json
            #expect(told["algorithm"] == .string(algorithm.rawValue))
        }
    }

    @Test("Tag quotas are merged per tag and per field")
    func quotasOfTagsAreMergedTagByTagAndFieldByField() throws {
        let present = PolicySettings(tagQuotas: ["a": Quota(minBytes: 1, maxBytes: 2), "b": Quota(maxBytes: 5)])
        let merged = try present.merging(["tagQuotas": ["a": ["maxBytes": .null], "b": .null, "c d": ["minBytes": 3]]])

        #expect(merged.tagQuotas == ["a": Quota(minBytes: 1), "c d": Quota(minBytes: 3)])
        #expect(merged.json["tagQuotas"]?["a"] == ["minBytes": 1, "maxBytes": .null])
        #expect(try present.merging(["capacityBytes": .null]).tagQuotas == present.tagQuotas)
        #expect(try present.merging(["tagQuotas": .null]).tagQuotas.isEmpty)
    }

    @Test(
        "An invalid policy is rejected with the field name",
        arguments: [
            (["tagQuotas": 1], "tagQuotas"), (["tagQuotas": ["": ["minBytes": 1]]], "tagQuotas"),
            (["tagQuotas": ["a": 1]], "tagQuotas.a"), (["tagQuotas": ["a": ["most": 1]]], "tagQuotas.a.most"),
            (["tagQuotas": ["a": ["minBytes": 2, "maxBytes": 1]]], "tagQuotas.a.maxBytes"),
            (["tagQuotas": ["a": ["maxBytes": 0]]], "tagQuotas.a.maxBytes"),
            (["capacity": 1], "capacity"), (["capacityBytes": "1GiB"], "capacityBytes"),
            (["capacityBytes": -1], "capacityBytes"),
            (["highWatermark": .null], "highWatermark"), (["highWatermark": 2], "highWatermark"),
            (["lowWatermark": .number(0.99)], "lowWatermark"), (["algorithm": "random"], "algorithm"),
            (["admission": ["minUses": 0]], "admission.minUses"), (["admission": ["uses": 2]], "admission.uses"),
            (["admission": .null], "admission"), (["graceSeconds": .bool(true)], "graceSeconds"),
            (["maxIdleSeconds": 0], "maxIdleSeconds"),
        ] as [(JSON, String)])
    func aWrongPolicyIsRefusedByName(patch: JSON, name: String) {
        #expect(field { _ = try PolicySettings().merging(patch) } == name)
    }

    @Test("An origin is parsed and rendered without its secrets")
    func anOriginIsReadAndToldWithoutItsSecrets() throws {
        let body: JSON = [
            "baseURL": "https://media.example.com/library", "headers": ["Authorization": "Bearer s3cret"],
            "freshness": ["ttlSeconds": 60], "keyQuery": ["exclude": ["token"]],
            "timeouts": ["connectSeconds": 1, "totalSeconds": .null, "readSeconds": .number(2.5)],
            "maxBytesPerSecond": 1000, "tls": ["verify": .bool(false)], "allowPrivateAddresses": .bool(true),
        ]
        let settings = try OriginSettings(body, name: "demo", present: nil)
        #expect(settings.headers["authorization"] == "Bearer s3cret")
        #expect(settings.freshness == .ttl(.seconds(60)) && settings.keyQuery == .exclude(["token"]))
        #expect(settings.timeouts.connect == .seconds(1) && settings.timeouts.total == nil)
        #expect(settings.readTimeout == .milliseconds(2500) && !settings.tls.verify)

        let told = Origin(name: "demo", settings: settings).json
        #expect(!told.text.contains("s3cret"))
        #expect(told["access"] == "token")
        #expect(try OriginSettings(told, name: "demo", present: settings).headers == settings.headers)
        #expect(field { _ = try OriginSettings(told, name: "demo", present: nil) } == "headers.Authorization")
    }

    @Test("The members of a circuit breaker have their own defaults")
    func aCircuitBreakersPartsHaveDefaultsOfTheirOwn() throws {
        func breaker(_ json: JSON) throws -> OriginSettings.CircuitBreaker? {
            let body: JSON = ["baseURL": "http://x", "circuitBreaker": json]
            return try OriginSettings(body, name: "demo", present: nil).circuitBreaker
        }
        #expect(try breaker(.object([])) == .init(failures: 10, pause: .seconds(2)))
        #expect(try breaker(["failures": 3]) == .init(failures: 3, pause: .seconds(2)))
        #expect(try breaker(["pauseSeconds": .number(0.5)]) == .init(failures: 10, pause: .milliseconds(500)))
        #expect(try breaker(.bool(false)) == nil)
    }

    @Test("A masked secret cannot be carried to a new mirror")
    func aKeptSecretGoesToNoMirrorThatWasNotThere() throws {
        var present = OriginSettings(baseURL: "https://one.example/a")
        present.mirrors = ["https://two.example/a"]
        present.headers = ["Authorization": "s3cret"]
        func put(_ mirrors: [String], headers: JSON = ["Authorization": .string(Origin.secret)]) throws {
            let body: JSON = [
                "baseURL": "https://one.example/a", "headers": headers, "mirrors": .array(mirrors.map(JSON.string)),
            ]
            _ = try OriginSettings(body, name: "demo", present: present)
        }
        for mirrors in [[], ["https://two.example/a"], ["https://TWO.example/b", "https://one.example/c"]] {
            #expect(field { try put(mirrors) } == nil)
        }
        for mirror in ["https://three.example", "http://two.example/a", "https://two.example:444/a"] {
            #expect(field { try put(["https://two.example/a", mirror]) } == "headers.Authorization")
            #expect(field { try put([mirror], headers: ["Authorization": "new"]) } == nil)
        }
    }

    @Test("A rendered origin parses to the same settings", arguments: Samples.origins)
    func anOriginThatIsToldReadsBackAsItWas(origin: Origin) throws {
        let again = try OriginSettings(origin.json, name: origin.name, present: origin.settings)
        var expected = origin.settings
        expected.access = expected.effectiveAccess
        #expect(again == expected)
    }

    @Test("Absent origin fields get their defaults")
    func whatAnOriginLeavesOutTakesItsDefault() throws {
        let bare = OriginSettings(baseURL: "http://x")
        #expect(try OriginSettings(["baseURL": "http://x"], name: "demo", present: nil) == bare)
        let nulls: JSON = [
            "baseURL": "http://x", "credentialsFile": .null, "staleIfErrorSeconds": .null, "fallback": .null,
            "finishIfRemainingPercent": .null, "maxBytesPerSecond": .null, "access": .null, "tls": ["caFile": .null],
            "storeRules": ["maxBytes": .null], "quota": ["maxBytes": .null],
        ]
        #expect(try OriginSettings(nulls, name: "demo", present: nil) == bare)
        for key in ["trustValidators", "hedging", "mirrors", "tls", "headers", "retries"] {
            let change: JSON = ["baseURL": "http://x", key: .null]
            #expect(throws: CacheError.self, "\(key)") { try OriginSettings(change, name: "demo", present: nil) }
        }
    }

    /// RFC 7396: absent members stay, null restores the default, objects are merged.
    @Test("A patch of an origin changes only the fields it names")
    func aPatchOfAnOriginChangesWhatItNames() throws {
        var present = OriginSettings(baseURL: "http://x")
        present.headers = ["Authorization": "secret", "X-A": "1"]
        (present.retries, present.staleIfError, present.keyQuery) = (7, .seconds(9), .include(["v"]))
        present.timeouts.idle = .seconds(3)
        #expect(try present.merging([:], name: "demo") == present)
        let patched = try present.merging(
            [
                "retries": .null, "headers": ["X-A": .null, "X-B": "2"], "timeouts": ["connectSeconds": 8],
                "keyQuery": ["exclude": ["sig"]], "hedging": .bool(true),
            ], name: "demo")
        var expected = present
        expected.headers = ["Authorization": "secret", "X-B": "2"]
        (expected.retries, expected.keyQuery, expected.hedging) = (3, .exclude(["sig"]), true)
        expected.timeouts.connect = .seconds(8)
        #expect(patched == expected)
        for bad: JSON in [
            ["baseURL": .null], ["hedged": .bool(true)], [1], ["name": "other"], ["headers": ["A": "•••"]],
        ] {
            #expect(throws: CacheError.self) { try present.merging(bad, name: "demo") }
        }
    }

    @Test(
        "An invalid origin rule is rejected with the field name",
        arguments: [
            (["credentialsFile": "/etc/passwd"], "credentialsFile"),
            (["credentialsFile": "a/../../b"], "credentialsFile"),
            (["credentialsFile": 1], "credentialsFile"), (["trustValidators": "weak"], "trustValidators"),
            (["staleIfErrorSeconds": -1], "staleIfErrorSeconds"),
            (["staleIfErrorSeconds": "1h"], "staleIfErrorSeconds"),
            (["negativeCaching": .bool(true)], "negativeCaching"), (["negativeCaching": 300], "negativeCaching"),
            (["negativeCaching": .object([])], "negativeCaching.maxSeconds"),
            (["negativeCaching": ["maxSeconds": 0]], "negativeCaching.maxSeconds"),
            (["negativeCaching": ["seconds": 5]], "negativeCaching.seconds"),
            (["requestDirectives": "yes"], "requestDirectives"), (["ignoreVary": "User-Agent"], "ignoreVary"),
            (["ignoreVary": ["A", "B C"]], "ignoreVary[1]"), (["ignoreVary": [1]], "ignoreVary[0]"),
            (["ignoreVary": .array((0..<33).map { .string("X-\($0)") })], "ignoreVary"),
            (["unknownLength": "206"], "unknownLength"), (["errorBodies": "own"], "errorBodies"),
            (["verify": "never"], "verify"),
            (["fallback": "a.mp4"], "fallback"),
            (["fallback": .object([])], "fallback.assetId"), (["fallback": ["assetId": "xyz"]], "fallback.assetId"),
            (["fallback": ["assetId": "9f86d081884c7d659a2feaa0c55ad015", "file": "a"]], "fallback.assetId"),
            (["fallback": ["file": "../a"]], "fallback.file"), (["fallback": ["url": "http://x"]], "fallback.url"),
            (["freshness": "heuristic"], "freshness"),
            (["finishIfRemainingPercent": 101], "finishIfRemainingPercent"),
            (["finishIfRemainingPercent": .number(0.5)], "finishIfRemainingPercent"),
            (["gapMergeBytes": 16_777_217], "gapMergeBytes"), (["gapMergeBytes": "64KiB"], "gapMergeBytes"),
            (["speculativeBytes": -1], "speculativeBytes"), (["speculativeBytes": 1_073_741_825], "speculativeBytes"),
            (["mirrors": "http://y"], "mirrors"), (["mirrors": ["http://y", 1]], "mirrors[1]"),
            (["mirrors": ["http://y", "y"]], "mirrors[1]"), (["mirrors": ["http://X/"]], "mirrors[0]"),
            (["mirrors": .array((0..<9).map { .string("http://m\($0)") })], "mirrors"),
            (["hedging": 1], "hedging"), (["circuitBreaker": .bool(true)], "circuitBreaker"),
            (["circuitBreaker": 5], "circuitBreaker"), (["circuitBreaker": ["pause": 5]], "circuitBreaker.pause"),
            (["circuitBreaker": ["failures": 0]], "circuitBreaker.failures"),
            (["circuitBreaker": ["failures": 1001]], "circuitBreaker.failures"),
            (["circuitBreaker": ["pauseSeconds": 0]], "circuitBreaker.pauseSeconds"),
            (["circuitBreaker": ["pauseSeconds": 3601]], "circuitBreaker.pauseSeconds"),
        ] as [(JSON, String)])
    func aWrongRuleOfAnOriginIsRefusedByName(rule: JSON, name: String) {
        let body = JSON.object(rule.members + [JSON.Member("baseURL", "http://x")])
        #expect(field { _ = try OriginSettings(body, name: "demo", present: nil) } == name)
    }

    @Test(
        "An invalid origin is rejected with the field name",
        arguments: [
            ([:], "baseURL"), (["baseURL": "ftp://x"], "baseURL"), (["baseURL": "http://x", "quota": 1], "quota"),
            (["baseURL": "http://x", "headers": ["Host": "y"]], "headers.Host"),
            (["baseURL": "http://x", "headers": ["A": 1]], "headers.A"),
            (["baseURL": "http://x", "name": "other"], "name"),
            (["baseURL": "http://x", "freshness": "never"], "freshness"),
            (["baseURL": "http://x", "freshness": ["ttl": 1]], "freshness.ttl"),
            (["baseURL": "http://x", "keyQuery": ["include": [1]]], "keyQuery.include[0]"),
            (["baseURL": "http://x", "timeouts": ["readSeconds": .null]], "timeouts.readSeconds"),
            (["baseURL": "http://x", "timeouts": ["connect": 1]], "timeouts.connect"),
            (["baseURL": "http://x", "retries": -1], "retries"), (["baseURL": "http://x", "access": "open"], "access"),
            (["baseURL": "http://x", "tls": ["insecure": .bool(true)]], "tls.insecure"),
        ] as [(JSON, String)])
    func aWrongOriginIsRefusedByName(body: JSON, name: String) {
        #expect(field { _ = try OriginSettings(body, name: "demo", present: nil) } == name)
    }

    @Test(
        "An invalid job is rejected with the field name",
        arguments: [
            ([:], "items"), (["items": []], "items"), (["items": [[:]]], "items[0].url"),
            (["items": [["url": "http://x", "origin": "a", "path": "b"]]], "items[0].url"),
            (["items": [["origin": "a"]]], "items[0].path"), (["items": [["path": "a"]]], "items[0].origin"),
            (["items": [["assetId": "xyz"]]], "items[0].assetId"),
            (["items": [["url": "http://x", "ranges": ["bytes=5-1"]]]], "items[0].ranges[0]"),
            (["items": [["url": "http://x", "range": "bytes=0-1"]]], "items[0].range"),
            (["items": [["url": "http://x"]], "priority": "urgent"], "priority"),
            (["items": [["url": "http://x"]], "queue": 1], "queue"),
            (["items": [["url": "http://x"]], "supersede": "yes"], "supersede"),
            (["items": [["url": "http://x"]], "timeoutSeconds": 0], "timeoutSeconds"),
            (["items": [["url": "http://x"]], "deadlineAt": "soon"], "deadlineAt"),
        ] as [(JSON, String)])
    func aWrongJobIsRefusedByName(body: JSON, name: String) {
        #expect(field { _ = try CreateJobRequest(body, fingerprint: "") } == name)
    }

    @Test("A probe request can have many items with shared defaults")
    func aProbeOrdersManyWithCommonDefaults() throws {
        let order = try ProbeRequest([
            "timeoutSeconds": 2,
            "items": [["url": "http://x"], ["origin": "demo", "path": "/a b", "timeoutSeconds": 9]],
        ])
        #expect(order.isMany && order.items.map(\.timeout) == [.seconds(2), .seconds(9)])
        #expect(order.items[1].reference == .mounted(origin: "demo", path: "a b", key: nil))
        #expect(field { _ = try ProbeRequest(["url": "http://x", "items": [["url": "http://y"]]]) } == "url")
    }

    @Test("A purge without conditions is rejected")
    func aPurgeOfEverythingMustBeSaid() {
        #expect(field { _ = try PurgeRequest(["dryRun": .bool(true)]) } == "origin")
        #expect(field { _ = try EvictRequest(["freeBytes": 1, "targetBytes": 1]) } == "targetBytes")
        #expect(field { _ = try EvictRequest(.object([])) } == "freeBytes")
    }

    @Test("An asset patch distinguishes null from absent")
    func anAssetPatchTellsNullFromAbsent() throws {
        #expect(try AssetPatch(["ttlSeconds": .null]).ttl == .null)
        #expect(try AssetPatch(["pinned": .bool(true)]).ttl == .absent)
        #expect(try AssetPatch(["verify": "always"]).verify == .value(.always))
        #expect(try AssetPatch(["verify": .null]).verify == .null)
        #expect(field { _ = try AssetPatch(["verify": "never"]) } == "verify")
        #expect(field { _ = try AssetPatch(["pinned": .null]) } == "pinned")
        #expect(field { _ = try AssetPatch(["tags": [""]]) } == "tags[0]")
    }

    @Test("A server-sent event has the job on one line")
    func anEventHoldsTheJobInOneLine() throws {
        let text = JobEventRenderer.text(of: Samples.job, after: nil)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines[0] == "event: state" && lines[1] == "id: 4")
        #expect(lines[2].hasPrefix("data: {") && lines.dropFirst(3) == ["", ""])
        #expect(try JSONParser.parse(lines[2].dropFirst(6).utf8).text == JobDocument(Samples.job).jsonText)
        #expect(JobEventRenderer.text(of: Samples.job, after: .running).hasPrefix("event: progress\n"))
    }

    /// RFC 7240 §2: values may be quoted and have parameters; an invalid preference is ignored.
    @Test("A preferred wait is limited to one minute")
    func aPreferenceToWaitIsCutToAMinute() {
        for (text, seconds) in [
            ("respond-async, wait=5", 5), ("Wait = 600", 60), ("wait=\"7\"", 7), ("wait=5; foo=bar", 5),
            ("foo=\"a, wait=9\", wait=3", 3), ("wait=4, wait=5", 4), ("wait=99999999999999999999", 60), ("wait=0", 0),
        ] { #expect(Preferences([text]).wait == .seconds(seconds), "\(text)") }
        for text in ["return=minimal", "wait=soon", "wait=1.5", "wait=-1", "wait", "wait=", "wait=\"", "", ",;="] {
            #expect(Preferences([text]).wait == nil, "\(text)")
        }
    }
}
