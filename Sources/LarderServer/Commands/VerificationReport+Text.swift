import CacheCore
import CacheStore
import Foundation

/// The output of `larder verify`.
extension VerificationReport {
    /// Text output: one line per finding, and a summary line.
    var table: String {
        let lines = findings.map { finding in
            let place = finding.range.map { " \($0.lowerBound)+\($0.length)" } ?? ""
            return "\(finding.kind.rawValue)  \(finding.asset?.description ?? "-")  \(finding.file ?? "-")\(place)"
        }
        let unchecked = uncheckableBytes > 0 ? ", \(uncheckableBytes) of them without checksums" : ""
        let locked = lockedBytes > 0 ? ", \(lockedBytes) bytes not verified, because their master key is missing" : ""
        let outcome = findings.isEmpty ? "no problems found" : "\(findings.count) problems found"
        return (lines + ["\(assets) assets, \(files) files, \(bytes) bytes\(unchecked)\(locked): \(outcome)\(repairs)"])
            .joined(separator: "\n")
    }

    private var repairs: String { findings.isEmpty || !isRepaired ? "" : ", and repaired" }

    /// JSON output.
    var json: String {
        struct Line: Encodable {
            let kind: String
            let assetId: String?
            let file: String?
            let offset: Int64?
            let length: Int64?
        }
        struct Whole: Encodable {
            let assets: Int
            let files: Int
            let bytes: Int64
            let uncheckableBytes: Int64
            let lockedBytes: Int64
            let repaired: Bool
            let findings: [Line]
        }
        let whole = Whole(
            assets: assets, files: files, bytes: bytes, uncheckableBytes: uncheckableBytes, lockedBytes: lockedBytes,
            repaired: isRepaired,
            findings: findings.map {
                Line(
                    kind: $0.kind.rawValue, assetId: $0.asset?.description, file: $0.file,
                    offset: $0.range?.lowerBound, length: $0.range?.length)
            })
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        // Encoding numbers and strings cannot fail.
        return ((try? encoder.encode(whole)).map { String(decoding: $0, as: UTF8.self) }) ?? "{}"
    }
}
