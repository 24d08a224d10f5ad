import CacheCore
import Foundation

/// A transaction of etcd: the operations are carried out at one revision if all conditions hold. At most 128 operations.
package struct EtcdTransaction: Sendable {
    /// A comparison with the present state of a key.
    package enum Condition: Sendable {
        case absent(String)
        case exists(String)
        /// The last change of the key has this revision.
        case revision(Int64, of: String)
    }

    /// A read or a change.
    package enum Operation: Sendable {
        /// `lease`: the key is deleted with it; nil: the key stays.
        case put(String, [UInt8], lease: Int64? = nil)
        case delete(String)
        case get(String)
        /// The keys from `from` on and before `to`, in order.
        case range(from: String, to: String, limit: Int = 0, keysOnly: Bool = false)

        /// All keys with this prefix, which ends with a slash.
        package static func list(_ prefix: String, keysOnly: Bool = false) -> Self {
            .range(from: prefix, to: Self.end(of: prefix), keysOnly: keysOnly)
        }

        /// The first key behind those with this prefix, which ends with a slash.
        package static func end(of prefix: String) -> String { prefix.dropLast() + "0" }
    }

    package var conditions: [Condition]
    package var operations: [Operation]

    package init(if conditions: [Condition] = [], _ operations: [Operation]) {
        self.conditions = conditions
        self.operations = operations
    }
}

/// The result of a transaction.
package struct EtcdResult: Sendable {
    /// Whether the conditions held, and the operations were carried out.
    package let isCommitted: Bool
    /// The revision of the store after the transaction.
    package let revision: Int64
    /// The entries that each operation has read; empty for changes, and without a commit.
    package let entries: [[EtcdEntry]]
}

/// A key with its value.
package struct EtcdEntry: Sendable {
    package let key: String
    /// Empty if only keys were requested.
    package let value: [UInt8]
    /// The revision of the last change of the key.
    package let revision: Int64
}

// MARK: JSON gateway

/// The form of the gRPC gateway: bytes are Base64 texts, and integers of 64 bits are texts with digits.
extension EtcdTransaction {
    var json: JSON {
        [
            "compare": .array(conditions.map(\.json)),
            "success": .array(operations.map(\.json)),
        ]
    }
}

extension EtcdTransaction.Condition {
    fileprivate var json: JSON {
        switch self {
        case .absent(let key): ["target": "VERSION", "result": "EQUAL", "key": key.base64, "version": "0"]
        case .exists(let key): ["target": "VERSION", "result": "GREATER", "key": key.base64, "version": "0"]
        case .revision(let revision, of: let key):
            ["target": "MOD", "result": "EQUAL", "key": key.base64, "mod_revision": .string(String(revision))]
        }
    }
}

extension EtcdTransaction.Operation {
    fileprivate var json: JSON {
        switch self {
        case .put(let key, let value, let lease):
            [
                "request_put": JSON(present: [
                    "key": key.base64, "value": .string(Data(value).base64EncodedString()),
                    "lease": lease.map { .string(String($0)) },
                ])
            ]
        case .delete(let key): ["request_delete_range": ["key": key.base64]]
        case .get(let key): ["request_range": ["key": key.base64]]
        case .range(let from, let to, let limit, let keysOnly):
            [
                "request_range": [
                    "key": from.base64, "range_end": to.base64, "limit": .string(String(limit)),
                    "keys_only": .bool(keysOnly), "sort_order": "ASCEND", "sort_target": "KEY",
                ]
            ]
        }
    }
}

extension String {
    var base64: JSON { .string(Data(utf8).base64EncodedString()) }
}

/// The response to a transaction.
struct TransactionDocument: Decodable {
    struct Header: Decodable {
        var revision: String
    }

    struct Response: Decodable {
        struct Range: Decodable {
            var kvs: [Entry]?
        }

        var response_range: Range?
    }

    struct Entry: Decodable {
        var key: String
        var value: String?
        var mod_revision: String
    }

    var header: Header
    /// Absent for false.
    var succeeded: Bool?
    var responses: [Response]?

    /// Throws `.upstreamProtocol` for an invalid number or text.
    func result() throws(CacheError) -> EtcdResult {
        let isCommitted = succeeded ?? false
        var entries: [[EtcdEntry]] = []
        for response in isCommitted ? responses ?? [] : [] {
            var read: [EtcdEntry] = []
            for entry in response.response_range?.kvs ?? [] { read.append(try Self.entry(entry)) }
            entries.append(read)
        }
        guard let revision = Int64(header.revision) else { throw EtcdClient.malformed }
        return EtcdResult(isCommitted: isCommitted, revision: revision, entries: entries)
    }

    private static func entry(_ entry: Entry) throws(CacheError) -> EtcdEntry {
        guard let key = Data(base64Encoded: entry.key), let value = Data(base64Encoded: entry.value ?? ""),
            let revision = Int64(entry.mod_revision)
        else { throw EtcdClient.malformed }
        return EtcdEntry(key: String(decoding: key, as: UTF8.self), value: Array(value), revision: revision)
    }
}
