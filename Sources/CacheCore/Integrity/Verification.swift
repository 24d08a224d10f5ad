/// The rule for comparing bytes from the disk with their checksums before they are sent.
package enum Verification: String, Hashable, Sendable, ChoiceCodable {
    /// Once after each start of the service, at the first read.
    case first
    /// Once, if the service has stopped without a clean shutdown since the bytes were written.
    case suspect
    /// On each read.
    case always
}
