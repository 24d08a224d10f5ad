import ReaderAccess
import Testing

struct AccessScopeTests {
    @Test("admin includes all, write includes read, sign includes nothing else")
    func inclusion() {
        let included: [AccessScope: Set<AccessScope>] = [
            .read: [.read], .write: [.read, .write], .sign: [.sign], .admin: [.read, .write, .sign, .admin],
        ]
        for scope in AccessScope.allCases {
            #expect(Set(AccessScope.allCases.filter(scope.includes)) == included[scope])
            let reader = Reader(id: "a", scope: scope)
            #expect(Set(AccessScope.allCases.filter(reader.permits)) == included[scope])
        }
        #expect(Reader(id: "a", scope: .read, signsURLs: true).permits(.sign))
    }
}
