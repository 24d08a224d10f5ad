import Testing

/// Trait that runs every test of a suite twice: with and without the fast path.
struct BothPaths: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? { testCase == nil ? nil : self }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        for isFastPathEnabled in [true, false] {
            try await TestService.$isFastPathEnabled.withValue(isFastPathEnabled) { try await function() }
        }
    }
}

extension Trait where Self == BothPaths {
    static var bothRoads: Self { Self() }
}
