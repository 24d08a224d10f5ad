// The entry point of the test program. Without a file of this name SwiftPM looks for tests of XCTest in the index of the
// compiler, which `scripts/debug` does not make; all tests use Swift Testing.
import Testing

@main struct Runner {
    static func main() async { await Testing.__swiftPMEntryPoint() as Never }
}
