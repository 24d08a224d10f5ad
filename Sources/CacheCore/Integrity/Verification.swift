/// The rule for comparing bytes from the disk with their checksums before they are sent.
package enum Verification: String, Hashable, Sendable, ChoiceCodable {
    /// Once, if the service has stopped without a clean shutdown since the bytes were written.
    case suspect
    /// On each read.
    case always
}
