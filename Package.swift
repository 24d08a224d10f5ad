// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
]

let collections: Target.Dependency = .product(name: "DequeModule", package: "swift-collections")
let structuredFields: Target.Dependency = .product(
    name: "RawStructuredFieldValues", package: "swift-http-structured-headers")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let lifecycle: Target.Dependency = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let signals: Target.Dependency = .product(name: "UnixSignals", package: "swift-service-lifecycle")
let nio: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")

let package = Package(
    name: "larder",
    platforms: [.macOS(.v26)],
    products: [.executable(name: "larder", targets: ["LarderServer"])],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", exact: "1.6.0"),
        .package(url: "https://github.com/apple/swift-http-structured-headers", exact: "1.7.0"),
        .package(url: "https://github.com/apple/swift-http-types", exact: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", exact: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-http2", exact: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", exact: "2.37.6"),
        .package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0"),
        .package(url: "https://github.com/jpsim/Yams", exact: "6.2.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", exact: "2.13.0"),
    ],
    targets: [
        .target(name: "CLinux"),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .target(name: "CCryptography", dependencies: ["COpenSSL"]),
        .target(name: "Cryptography", dependencies: ["CCryptography", "COpenSSL"], swiftSettings: settings),
        .target(name: "CacheCore", dependencies: [collections, structuredFields], swiftSettings: settings),
        .target(name: "MediaParsing", dependencies: ["CacheCore"], swiftSettings: settings),
        .target(name: "CacheSimulation", dependencies: ["CacheCore"], swiftSettings: settings),
        .target(
            name: "CacheStore",
            dependencies: [
                "CacheCore", "CLinux", "Cryptography", logging, .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: settings),
        .target(name: "CurlUpstream", dependencies: ["CacheCore", "CCurl", logging], swiftSettings: settings),
        .target(name: "CacheTracing", dependencies: ["CacheCore", logging, collections], swiftSettings: settings),
        .target(name: "EtcdClient", dependencies: ["CacheCore"], swiftSettings: settings),
        .target(name: "WebTokens", dependencies: ["CacheCore", "Cryptography"], swiftSettings: settings),
        .target(
            name: "UpstreamAccounts", dependencies: ["CacheCore", "Cryptography", "WebTokens"], swiftSettings: settings),
        .target(
            name: "ReaderAccess", dependencies: ["CacheCore", "Cryptography", "WebTokens"], swiftSettings: settings),
        .target(
            name: "CacheEngine",
            dependencies: [
                "CacheCore", "CacheSimulation", "CacheStore", "CacheTracing", "Cryptography", "EtcdClient",
                "MediaParsing", "UpstreamAccounts", logging, lifecycle, nio, nioPosix, collections,
            ],
            swiftSettings: settings),
        .target(
            name: "CacheAPI",
            dependencies: [
                "CacheCore", "CacheSimulation", "CacheEngine", "CacheTracing", "Cryptography", "MediaParsing",
                "ReaderAccess", "WebTokens", logging, lifecycle, nio, nioPosix, collections,
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras"),
                .product(name: "NIOHTTPCompression", package: "swift-nio-extras"),
                structuredFields,
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "LarderServer",
            dependencies: [
                "CLinux", "CCurl", "CacheCore", "CacheSimulation", "CacheStore", "CurlUpstream", "CacheEngine",
                "CacheAPI", "CacheTracing", "EtcdClient", "MediaParsing", "UpstreamAccounts", "ReaderAccess",
                "WebTokens",
                logging, lifecycle, signals, nio, nioPosix,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Yams", package: "Yams"),
            ],
            exclude: ["Dashboard"], swiftSettings: settings, plugins: ["EmbedDocument"]),
        .plugin(name: "EmbedDocument", capability: .buildTool()),
        .target(name: "TestChance", path: "Tests/TestChance", swiftSettings: settings),
        .target(name: "TestKeys", dependencies: ["COpenSSL"], path: "Tests/TestKeys", swiftSettings: settings),
        .target(name: "TestMedia", path: "Tests/TestMedia", swiftSettings: settings),
        .target(
            name: "CRecordingVFS", path: "Tests/CRecordingVFS",
            linkerSettings: [.linkedLibrary("sqlite3")]),
        .target(
            name: "CacheTestKit",
            dependencies: [
                "TestChance", "CacheCore", "CacheStore", "CacheEngine", "CurlUpstream", "CRecordingVFS", logging, nio,
                nioPosix,
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOHPACK", package: "swift-nio-http2"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            path: "Tests/CacheTestKit", swiftSettings: settings),
        .executableTarget(
            name: "EvictionBench", dependencies: ["CacheCore", "CacheSimulation", "TestChance"],
            path: "Benchmarks/Eviction", swiftSettings: settings),
        .executableTarget(
            name: "MicroBench",
            dependencies: ["CacheAPI", "CacheCore", "CacheEngine", "CacheStore", "TestChance", logging],
            path: "Benchmarks/Micro", swiftSettings: settings),
        .target(
            name: "FuzzSurfaces",
            dependencies: ["CacheAPI", "CacheCore", "CacheEngine", "CacheStore", "MediaParsing", "TestMedia"],
            path: "Tests/FuzzSurfaces", swiftSettings: settings),
        .executableTarget(
            name: "LarderFuzz", dependencies: ["FuzzSurfaces", "TestChance"], path: "Tests/Fuzz",
            swiftSettings: settings),
        .testTarget(
            name: "CacheCoreTests", dependencies: ["CacheCore", "CacheSimulation", "TestChance"],
            swiftSettings: settings),
        .testTarget(
            name: "MediaParsingTests", dependencies: ["MediaParsing", "TestChance", "TestMedia"],
            swiftSettings: settings),
        .testTarget(
            name: "CacheSimulationTests", dependencies: ["CacheSimulation", "TestChance"], swiftSettings: settings),
        .testTarget(name: "CryptographyTests", dependencies: ["Cryptography", "TestKeys"], swiftSettings: settings),
        .testTarget(
            name: "WebTokensTests", dependencies: ["WebTokens", "TestChance", "TestKeys"], swiftSettings: settings),
        .testTarget(
            name: "UpstreamAccountsTests", dependencies: ["UpstreamAccounts", "TestChance"], swiftSettings: settings),
        .testTarget(
            name: "ReaderAccessTests", dependencies: ["ReaderAccess", "TestChance", "TestKeys"],
            swiftSettings: settings),
        .testTarget(
            name: "CacheStoreTests", dependencies: ["CacheStore", "CacheTestKit", "TestChance"], exclude: ["Fixtures"],
            swiftSettings: settings),
        .testTarget(
            name: "CacheTracingTests", dependencies: ["CacheTracing", "CacheTestKit", "TestChance", logging],
            swiftSettings: settings),
        .testTarget(
            name: "CurlUpstreamTests", dependencies: ["CurlUpstream", "CacheTestKit", "TestChance"],
            swiftSettings: settings),
        .testTarget(
            name: "CacheEngineTests", dependencies: ["CacheEngine", "CacheTestKit", "TestChance", "TestMedia"],
            swiftSettings: settings),
        .testTarget(
            name: "CacheAPITests",
            dependencies: [
                "CacheAPI", "CacheTestKit", "TestChance",
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "Yams", package: "Yams"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "LarderServerTests",
            dependencies: [
                "LarderServer", "CacheTestKit", "TestChance", "CCurl",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)

// For `make fuzz`: the targets are instrumented, so that libFuzzer learns the branches of each input. It supplies `main`.
if Context.environment["LARDER_GUIDED_FUZZ"] != nil {
    let guided = SwiftSetting.unsafeFlags(["-sanitize=fuzzer", "-parse-as-library"])
    let instrumented = ["CacheCore", "MediaParsing", "CacheStore", "CacheEngine", "CacheAPI"]
    for target in package.targets where instrumented.contains(target.name) {
        target.swiftSettings?.append(guided)
    }
    package.targets.append(
        .executableTarget(
            name: "LarderGuidedFuzz", dependencies: ["FuzzSurfaces"], path: "Tests/FuzzGuided",
            swiftSettings: settings + [guided], linkerSettings: [.unsafeFlags(["-sanitize=fuzzer"])]))
}

// For `make tsan`: some test targets with their dependencies, so that nothing else is built.
if let names = Context.environment["LARDER_TESTS"]?.split(separator: ",").map(String.init) {
    var needed: Set<String> = []
    var waiting = names
    while let name = waiting.popLast() {
        guard needed.insert(name).inserted, let target = package.targets.first(where: { $0.name == name }) else {
            continue
        }
        for dependency in target.dependencies {
            if case .byNameItem(let inner, _) = dependency { waiting.append(inner) }
        }
    }
    package.targets.removeAll { !needed.contains($0.name) }
    package.products.removeAll()
}
