import Testing

/// Runs every test of a suite twice: with the express lane, and without it.
struct BothRoads: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? { testCase == nil ? nil : self }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        for isExpress in [true, false] {
            try await TestService.$isExpress.withValue(isExpress) { try await function() }
        }
    }
}

extension Trait where Self == BothRoads {
    static var bothRoads: Self { Self() }
}
