import ReaderAccess
import Testing

struct AccessScopeTests {
    @Test("admin includes write, write includes read")
    func order() {
        #expect(AccessScope.read < .write)
        #expect(AccessScope.write < .admin)
        #expect(AccessScope.read < .admin)
        #expect(!(AccessScope.admin < .admin))
        #expect(AccessScope.allCases.max() == .admin)
    }
}
