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
        let start = Timestamp(milliseconds: 0)
        let unset = AssetRecord(
            id: AssetID(high: 0, low: 0), key: "", origin: "", url: "", generation: Generation(receivedAt: start),
            createdAt: start, lastAccessAt: start)
        var fields = Fields(record: unset)
        try Self.columns.decode(row, into: &fields, secrets)
        record = fields.record
        file = fields.serial.map {
            FileName(asset: fields.record.id, generation: fields.record.generation.number, serial: $0)
        }
        cachedBytes = fields.cachedBytes
        checkedRun = fields.checkedRun
    }

    /// The values of the columns.
    struct Fields: Sendable {
        var record: AssetRecord
        /// The serial number of the file; nil: as `file`.
        var serial: Int64?
        var cachedBytes: Int64 = 0
        var checkedRun: Int64 = 0
    }

    /// The columns of the table. Updates keep usage counters and administrator settings (hits, pin, tags, lifetime,
    /// verification), because they may have changed since the record was read.
    static let columns: [Column<Fields>] = [
        Column("id", \.record.id, .assetID).on(update: .kept),
        Column("key", \.record.key),
        Column("origin", \.record.origin),
        Column("sealed_url", \.record.url, .sealed),
        Column("clear_url", encode: { fields, _ in RowCoding.redacted(fields.record.url) }),
        Column("generation", \.record.generation.number),
        Column("file_serial", \.serial),
        Column("length", \.record.generation.length),
        Column("content_type", \.record.generation.contentType),
        Column("content_type_from", \.record.generation.contentTypeFrom, .choice("a media type source")),
        Column(
            "entity_tag", encode: { fields, _ in fields.record.generation.validators.entityTag?.description },
            decode: { row, _, fields in
                let text = row["entity_tag"] as String?
                fields.record.generation.validators.entityTag = text.flatMap { EntityTag($0) }
            }),
        Column("last_modified", \.record.generation.validators.lastModified),
        Column("last_modified_is_strong", \.record.generation.validators.lastModifiedIsStrong),
        Column("accepts_ranges", \.record.generation.acceptsRanges),
        Column(
            "headers", encode: { fields, _ in try RowCoding.json(headers(of: fields.record.generation)) },
            decode: { row, _, fields in try decodeHeaders(row, into: &fields.record.generation) }),
        Column("received_at", \.record.generation.receivedAt, .timestamp),
        Column("initial_age", \.record.generation.initialAge, .duration),
        Column("fresh_until", \.record.generation.freshUntil, ColumnCodec.timestamp.orNull),
        Column("is_storable", \.record.generation.isStorable),
        Column("created_at", \.record.createdAt, .timestamp).on(update: .kept),
        Column("last_access_at", \.record.lastAccessAt, .timestamp).on(update: .largest),
        Column("hits", \.record.hits).on(update: .kept),
        Column("is_pinned", \.record.isPinned).on(update: .kept),
        Column("tags", \.record.tags, .json).on(update: .kept),
        Column("ttl", \.record.ttl, ColumnCodec.duration.orNull).on(update: .kept),
        Column(
            "sealed_variant",
            encode: { fields, secrets in
                let variant = fields.record.variant
                return variant.fields.isEmpty ? nil : try secrets.seal(RowCoding.json(variant))
            },
            decode: { row, secrets, fields in
                let sealed = row["sealed_variant"] as Data?
                fields.record.variant = try sealed.map { try RowCoding.headers(json: secrets.open($0)) } ?? [:]
            }
        ).on(update: .kept),
        Column("pinned_until", \.record.pinnedUntil, ColumnCodec.timestamp.orNull).on(update: .kept),
        Column(
            "verify", \.record.verify, ColumnCodec<Verification>.choice("an asset's verification mode").orNull
        ).on(update: .kept),
        Column("cached_bytes", \.cachedBytes).on(update: .unwritten),
        Column("checked_run", \.checkedRun).on(update: .unwritten),
    ]

    /// Inserts a row with all columns of a new asset.
    static let insertSQL = columns.insertion("INSERT OR REPLACE", into: "assets")
    /// Updates the columns that a commit owns.
    static let refreshSQL = columns.update(of: "assets")

    /// The field of the column `headers` for a status other than 200; named as in HTTP/2 (RFC 9113 §8.3.2).
    private static let statusField = ":status"

    /// The field of the column `headers` which states that its checksums are those of the whole. Earlier versions also
    /// stored checksums of parts, without this field: their checksums are dropped.
    private static let checksumField = ":checksums"

    /// The fields of a generation, with those that only the column has.
    private static func headers(of generation: Generation) -> HeaderList {
        var own: [HeaderList.Field] = []
        if generation.status != 200 { own.append(HeaderList.Field(statusField, String(generation.status))) }
        if generation.headers.fields.contains(where: { StoredHeaders.isChecksumOfContent($0.name) }) {
            own.append(HeaderList.Field(checksumField, "whole"))
        }
        return own.isEmpty ? generation.headers : HeaderList(own + generation.headers.fields)
    }

    /// Sets the header fields and the status to those of the column.
    private static func decodeHeaders(_ row: Row, into generation: inout Generation) throws {
        var headers = try RowCoding.headers(json: row["headers"])
        if let status = headers[statusField].flatMap({ Int($0) }) { generation.status = status }
        if headers[checksumField] == nil { headers.removeAll(where: StoredHeaders.isChecksumOfContent) }
        for field in [statusField, checksumField] { headers.remove(field) }
        generation.headers = headers
    }
}
