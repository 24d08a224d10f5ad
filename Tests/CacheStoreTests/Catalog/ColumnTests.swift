import CacheCore
import Foundation
import GRDB
import Testing

@testable import CacheStore

@Suite struct ColumnTests {
    /// The columns of a table in the current schema.
    private func columns(of table: String) async throws -> Set<String> {
        let testStore = try TestStore()
        return try await testStore.store.catalog.read { db in Set(try db.columns(in: table).map(\.name)) }
    }

    @Test("The tables of columns have all columns of the schema")
    func theTablesAreComplete() async throws {
        let assets = AssetRow.columns.map(\.name)
        #expect(try await columns(of: "assets") == Set(assets + ["row_sum"]))
        #expect(try await columns(of: "jobs") == Set(JobRow.columns.map(\.name) + ["sequence", "row_sum"]))
        #expect(try await columns(of: "job_items") == Set(JobRow.itemColumns.map(\.name) + ["job", "row_sum"]))
    }

    @Test("Checksums cover all columns but counters of use and of verification")
    func checksumsCoverTheRecords() {
        func names(_ table: ChecksummedTable) -> Set<String> {
            Set(table.columns.split(separator: ", ").map(String.init))
        }
        let counters: Set = ["hits", "last_access_at", "cached_bytes", "checked_run"]
        #expect(names(.assets) == Set(AssetRow.columns.map(\.name)).subtracting(counters))
        #expect(names(.jobs) == Set(JobRow.columns.map(\.name)).union(["sequence"]))
        #expect(names(.jobItems) == Set(JobRow.itemColumns.map(\.name)).union(["job"]))
    }

    @Test("An update keeps the columns of administrators and of use")
    func anUpdateKeepsColumns() {
        #expect(!AssetRow.refreshSQL.contains("hits = ") && !AssetRow.refreshSQL.contains("tags = "))
        #expect(AssetRow.refreshSQL.contains("last_access_at = max(last_access_at, :last_access_at)"))
        #expect(AssetRow.refreshSQL.hasSuffix(" WHERE id = :id"))
    }

    @Test("docs/operations.md states the version of the present schema")
    func theSchemaIsDocumented() throws {
        let file = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../docs/operations.md").standardized
        let version = try #require(Migrations.all.last).name
        #expect(try String(contentsOf: file, encoding: .utf8).contains("| unreleased | \(version) |"))
    }
}
