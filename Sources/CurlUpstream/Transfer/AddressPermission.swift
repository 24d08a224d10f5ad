import CacheCore

/// The addresses to which one request may connect: the rule of the address guard with the exceptions of its origin.
struct AddressPermission: Sendable {
    let refusal: @Sendable (_ address: [UInt8]) -> String?
    let allowsPrivate: Bool
    let allowsMetadataServices: Bool

    init(of request: UpstreamRequest, _ settings: CurlPoolSettings) {
        refusal = settings.refusal
        allowsPrivate = request.allowPrivateAddresses
        allowsMetadataServices = request.allowsMetadataServices
    }

    /// The kind of `address` (4 or 16 bytes in network order) if it is refused; nil: it is allowed.
    func refusedKind(of address: [UInt8]) -> String? {
        guard let kind = refusal(address) else { return nil }
        if allowsPrivate, !AddressGuard.isNeverAllowed(kind) { return nil }
        if allowsMetadataServices, AddressGuard.isMetadataService(kind) { return nil }
        return kind
    }
}
