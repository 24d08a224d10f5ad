package import CacheCore
import Foundation
import GRDB

/// A row of the table `assets`, without its extents, and its codec.
package struct AssetRow: Hashable, Sendable {
    /// The decoded columns.
    package let record: AssetRecord
    /// Nil if no bytes of this generation were ever stored.
    package let file: FileName?
    /// Sum of the lengths of the row's extents, in bytes.
    package let cachedBytes: Int64
    /// Number of the last service run that verified all cached bytes of the asset; 0 if none did.
    let checkedRun: Int64

    /// Decodes a row. Throws `storageCorrupt` if a value is invalid or a sealed column cannot be decrypted.
    init(_ row: Row, secrets: SecretBox) throws {
        let id = try RowCoding.assetID(row["id"])
        let generation = try Self.generation(row)
        record = AssetRecord(
            id: id, key: row["key"], origin: row["origin"],
            url: try secrets.open(row["sealed_url"]), generation: generation,
            createdAt: Timestamp(milliseconds: row["created_at"]),
            lastAccessAt: Timestamp(milliseconds: row["last_access_at"]), hits: row["hits"],
            isPinned: row["is_pinned"],
            pinnedUntil: (row["pinned_until"] as Int64?).map { Timestamp(milliseconds: $0) },
            tags: try RowCoding.value(json: row["tags"]),
            ttl: (row["ttl"] as Int64?).map { .milliseconds($0) },
            verify: try (row["verify"] as String?).map { try RowCoding.choice($0, "an asset's verification mode") },
            variant: try (row["sealed_variant"] as Data?).map { try RowCoding.headers(json: secrets.open($0)) } ?? [:])
        file = (row["file_serial"] as Int64?).map {
            FileName(asset: id, generation: generation.number, serial: $0)
        }
        cachedBytes = row["cached_bytes"]
        checkedRun = row["checked_run"]
    }

    /// The field of the column `headers` for a status other than 200; named as in HTTP/2 (RFC 9113 §8.3.2).
    private static let statusField = ":status"

    /// The field of the column `headers` which states that its checksums are those of the whole. Earlier versions also
    /// stored checksums of parts, without this field: their checksums are dropped.
    private static let checksumField = ":checksums"

    /// The fields of a generation, with those that only the column has.
    private static func fields(of generation: Generation) -> HeaderList {
        var own: [HeaderList.Field] = []
        if generation.status != 200 { own.append(HeaderList.Field(statusField, String(generation.status))) }
        if generation.headers.fields.contains(where: { StoredHeaders.isChecksumOfContent($0.name) }) {
            own.append(HeaderList.Field(checksumField, "whole"))
        }
        return own.isEmpty ? generation.headers : HeaderList(own + generation.headers.fields)
    }

    /// Decodes the columns that belong to the asset's generation.
    private static func generation(_ row: Row) throws -> Generation {
        var headers = try RowCoding.headers(json: row["headers"])
        let status = headers[statusField].flatMap { Int($0) }
        if headers[checksumField] == nil { headers.removeAll(where: StoredHeaders.isChecksumOfContent) }
        for field in [statusField, checksumField] { headers.remove(field) }
        var generation = Generation(
            number: row["generation"], length: row["length"], contentType: row["content_type"],
            contentTypeFrom: try RowCoding.choice(row["content_type_from"], "a media type source"),
            validators: Validators(
                entityTag: (row["entity_tag"] as String?).flatMap { EntityTag($0) },
                lastModified: row["last_modified"], lastModifiedIsStrong: row["last_modified_is_strong"]),
            acceptsRanges: row["accepts_ranges"], headers: headers,
            receivedAt: Timestamp(milliseconds: row["received_at"]),
            initialAge: .milliseconds(row["initial_age"] as Int64),
            freshUntil: (row["fresh_until"] as Int64?).map { Timestamp(milliseconds: $0) },
            isStorable: row["is_storable"])
        if let status { generation.status = status }
        return generation
    }

    /// The bound values of `insertSQL` and `refreshSQL`, by column name.
    static func arguments(
        _ record: AssetRecord, serial: Int64?, secrets: SecretBox
    ) throws -> StatementArguments {
        let generation = record.generation
        let asset: StatementArguments = [
            "id": RowCoding.blob(record.id), "key": record.key, "origin": record.origin,
            "sealed_url": try secrets.seal(record.url), "clear_url": RowCoding.redacted(record.url),
            "file_serial": serial, "created_at": record.createdAt.milliseconds,
            "last_access_at": record.lastAccessAt.milliseconds, "hits": record.hits, "is_pinned": record.isPinned,
            "pinned_until": record.pinnedUntil?.milliseconds, "tags": try RowCoding.json(record.tags),
            "ttl": record.ttl?.wholeMilliseconds,
            "verify": record.verify?.rawValue,
            "sealed_variant": record.variant.fields.isEmpty ? nil : try secrets.seal(RowCoding.json(record.variant)),
        ]
        return asset &+ [
            "generation": generation.number, "length": generation.length, "content_type": generation.contentType,
            "content_type_from": generation.contentTypeFrom.rawValue,
            "entity_tag": generation.validators.entityTag?.description,
            "last_modified": generation.validators.lastModified,
            "last_modified_is_strong": generation.validators.lastModifiedIsStrong,
            "accepts_ranges": generation.acceptsRanges, "headers": try RowCoding.json(fields(of: generation)),
            "received_at": generation.receivedAt.milliseconds,
            "initial_age": generation.initialAge.wholeMilliseconds,
            "fresh_until": generation.freshUntil?.milliseconds, "is_storable": generation.isStorable,
        ]
    }

    /// Inserts a row with all columns of a new asset.
    static let insertSQL = """
        INSERT OR REPLACE INTO assets (
            id, key, origin, sealed_url, clear_url, generation, file_serial, length, content_type,
            content_type_from, entity_tag, last_modified, last_modified_is_strong, accepts_ranges, headers, received_at,
            initial_age, fresh_until, is_storable, created_at, last_access_at, hits, is_pinned, tags, ttl,
            sealed_variant, pinned_until, verify
        ) VALUES (
            :id, :key, :origin, :sealed_url, :clear_url, :generation, :file_serial, :length,
            :content_type, :content_type_from, :entity_tag, :last_modified, :last_modified_is_strong, :accepts_ranges,
            :headers, :received_at, :initial_age, :fresh_until, :is_storable, :created_at, :last_access_at, :hits,
            :is_pinned, :tags, :ttl, :sealed_variant, :pinned_until, :verify
        )
        """

    /// Updates the columns that a commit owns. Usage counters and administrator settings (hits, pin, tags, lifetime,
    /// verification) keep their stored values, because they may have changed since the record was read.
    static let refreshSQL = """
        UPDATE assets SET
            key = :key, origin = :origin, sealed_url = :sealed_url,
            clear_url = :clear_url, generation = :generation, file_serial = :file_serial, length = :length,
            content_type = :content_type, content_type_from = :content_type_from, entity_tag = :entity_tag,
            last_modified = :last_modified, last_modified_is_strong = :last_modified_is_strong,
            accepts_ranges = :accepts_ranges, headers = :headers, received_at = :received_at,
            initial_age = :initial_age, fresh_until = :fresh_until, is_storable = :is_storable,
            last_access_at = max(last_access_at, :last_access_at)
        WHERE id = :id
        """
}
