import Cryptography
import Testing

struct SecureCompareTests {
    @Test("Only equal bytes of equal length are equal")
    func equality() {
        #expect(SecureCompare.areEqual([], []))
        #expect(SecureCompare.areEqual([1, 2, 3], [1, 2, 3]))
        #expect(!SecureCompare.areEqual([1, 2, 3], [1, 2]))
        #expect(!SecureCompare.areEqual([1, 2, 3], [1, 2, 4]))
        #expect(!SecureCompare.areEqual([0, 2, 3], [1, 2, 3]))
        #expect(!SecureCompare.areEqual([], [0]))
    }
}
