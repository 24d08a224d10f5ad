import CacheCore
import CacheStore
import UpstreamAccounts

extension OriginAccounts {
    /// The accounts of a cache. `directory`: as for ``Parts``.
    convenience init(_ dependencies: AssetCache.Dependencies, threads: DiskThreads, directory: String?) {
        self.init(Parts(dependencies, threads: threads, directory: directory))
    }
}

extension OriginAccounts.Parts {
    /// The parts from the dependencies of the cache. Files are read on disk threads.
    ///
    /// - Parameter directory: The directory of credentials files; nil: there is none.
    init(_ dependencies: AssetCache.Dependencies, threads: DiskThreads, directory: String?) {
        let store = dependencies.store
        self.init(
            readFile: { (path) throws(CacheError) in
                guard let directory else {
                    throw .invalid("auth.file", "Set credentialsDirectory to use credentials files.")
                }
                do {
                    return try await threads.run { () throws(CacheError) in
                        try store.readForeign(path, below: directory, limit: CredentialsText.maxBytes)
                    }
                } catch {
                    throw CacheError(
                        .invalidField("auth.file"), "The file \(path) below credentialsDirectory cannot be read.",
                        cause: error)
                }
            },
            readAbsoluteFile: { (path) throws(CacheError) in
                let relative = String(path.drop { $0 == "/" })
                return try await threads.run { () throws(CacheError) in
                    try store.readForeign(relative, below: "/", limit: CredentialsText.maxBytes)
                }
            },
            environment: dependencies.environment,
            refreshTokens: SealedRefreshTokens(catalog: store.catalog), upstream: dependencies.upstream,
            clock: dependencies.clock, wallClock: dependencies.wallClock, random: dependencies.random,
            logger: dependencies.logger)
    }
}
