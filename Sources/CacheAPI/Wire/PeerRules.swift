import ReaderAccess

/// The proofs by which other nodes of the fleet read: keys, and names in client certificates.
///
/// Such a node gets the cached content of all origins, except what is private to readers. It gets nothing else.
package struct PeerRules: Sendable {
    private let keys: [TokenDigest]
    private let certificateNames: Set<String>

    package init(keys: [String] = [], certificateNames: Set<String> = []) {
        self.keys = keys.map { TokenDigest(of: $0) }
        self.certificateNames = certificateNames
    }

    /// Whether a node can prove itself.
    package var isEnabled: Bool { !keys.isEmpty || !certificateNames.isEmpty }

    /// Whether the credentials prove a node.
    func admit(_ credentials: RequestCredentials) -> Bool {
        if admit(certificate: credentials) { return true }
        guard let token = credentials.bearerToken else { return false }
        let digest = TokenDigest(of: token)
        return keys.contains { $0 == digest }
    }

    /// Whether a client certificate proves a node. Content of encrypted origins is sent to such nodes only.
    func admit(certificate credentials: RequestCredentials) -> Bool {
        credentials.subjects.contains { certificateNames.contains($0) }
    }
}
