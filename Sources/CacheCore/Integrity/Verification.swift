/// When bytes from the disk are compared with their checksums before they are sent.
package enum Verification: String, Hashable, Sendable, CaseIterable {
    /// Once, where the service ended out of order since they were written.
    case suspect
    /// With each read.
    case always
}
