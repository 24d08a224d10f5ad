package import CacheCore

/// The members of an etcd cluster, and the user that authenticates there.
package struct EtcdSettings: Hashable, Sendable {
    /// A user of etcd. The JSON gateway ignores the names in client certificates.
    package struct User: Hashable, Sendable, CustomStringConvertible {
        package var name: String
        /// A secret.
        package var password: String

        package init(name: String, password: String) {
            self.name = name
            self.password = password
        }

        /// Without the password.
        package var description: String { name }
    }

    /// The base URLs of the members, without a slash at the end.
    package var endpoints: [String]
    package var tls: TLSSettings
    /// Nil: etcd requires no authentication.
    package var user: User?

    package init(endpoints: [String], tls: TLSSettings = TLSSettings(), user: User? = nil) {
        self.endpoints = endpoints
        self.tls = tls
        self.user = user
    }
}
