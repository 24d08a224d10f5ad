package import CacheCore

/// The state of a store's directory, found without a change of the store, also while a service uses it.
package struct StoreInspection: Hashable, Sendable {
    /// Whether the directory contains a catalog.
    package let hasCatalog: Bool
    /// The process that uses the directory, as in `process 12 since 2026-01-01T00:00:00Z`; nil: none.
    package let holder: String?

    init(hasCatalog: Bool, holder: String?) {
        self.hasCatalog = hasCatalog
        self.holder = holder
    }

    /// Inspects an existing directory. Throws the errors of `Store.open` for a directory with foreign files only, for a
    /// catalog of a newer version, and for a file that cannot be read.
    package init(directory: String, disk: any Disk = SystemDisk()) throws(CacheError) {
        let layout = StoreLayout(directory: directory)
        try Store.checkOwnership(layout, disk)
        holder = try DirectoryLock.holder(in: layout, disk: disk)
        hasCatalog = try disk.status(of: layout.catalog) != nil
        guard hasCatalog else { return }
        do {
            try Catalog.checkVersion(Catalog.readOnly(layout.catalog), layout.catalog, Migrations.migrator)
        } catch {
            throw CacheError(database: error)
        }
    }
}
