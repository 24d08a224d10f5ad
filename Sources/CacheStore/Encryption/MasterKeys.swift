package import CacheCore

/// The master keys in force, by identifier. They are replaced as a whole by ``replace(_:)``.
package final class MasterKeys: Sendable {
    /// The keys and their rules.
    package struct Content: Sendable {
        package var keys: [MasterKey] = []
        /// The identifier of the key for new files; nil: the last one in the order of identifiers.
        package var activeID: String?
        package var onMissingKey = MissingKeyRule.refuse
        package var onChange = EncryptionChangeRule.refetch

        package init(
            keys: [MasterKey] = [], activeID: String? = nil, onMissingKey: MissingKeyRule = .refuse,
            onChange: EncryptionChangeRule = .refetch
        ) {
            self.keys = keys
            self.activeID = activeID
            self.onMissingKey = onMissingKey
            self.onChange = onChange
        }

        /// The key for new files; nil if it is not available.
        package var active: MasterKey? {
            if let activeID { return keys.first { $0.id == activeID } }
            return keys.max { $0.id < $1.id }
        }
    }

    private let content: OrderedMutex<Content>

    package init(_ content: Content = Content()) { self.content = OrderedMutex(.leaf, content) }

    /// Puts other keys in force. Files that are open keep their own keys.
    package func replace(_ content: Content) { self.content.withLock { $0 = content } }

    /// The identifiers of the available keys, sorted.
    package var ids: [String] { content.withLock { $0.keys.map(\.id) }.sorted() }

    /// The identifier of the key for new files; nil if there is none.
    package var activeID: String? { content.withLock { $0.active?.id } }

    package var onMissingKey: MissingKeyRule { content.withLock(\.onMissingKey) }
    package var onChange: EncryptionChangeRule { content.withLock(\.onChange) }

    /// The key with that identifier; nil if it is not available.
    func key(_ id: String) -> MasterKey? { content.withLock { $0.keys.first { $0.id == id } } }

    /// The key for new files. Throws `encryptionKeyMissing`.
    func active() throws(CacheError) -> MasterKey {
        let (active, wanted) = content.withLock { ($0.active, $0.activeID) }
        guard let active else { throw SealedKey.missing(id: wanted) }
        return active
    }
}
