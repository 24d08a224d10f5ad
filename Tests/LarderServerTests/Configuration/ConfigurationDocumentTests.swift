import CacheCore
import Foundation
import Testing

@testable import LarderServer

/// The tables of docs/configuration.md, compared with the settings of the program.
@Suite struct ConfigurationDocumentTests {
    @Test("docs/configuration.md has a row with key and variable for each setting")
    func everySettingHasARow() throws {
        let rows = try Self.rows()
        let keys = Setting<LarderSettings>.all.map(\.key)

        #expect(Set(rows.keys) == Set(keys))
        for key in keys {
            #expect(rows[key] == Self.variable(of: key), "\(key)")
        }
    }

    @Test("docs/configuration.md names each setting of an origin")
    func everyOriginSettingIsNamed() throws {
        let text = try Self.text()
        for setting in Setting<OriginSettings>.all {
            #expect(text.contains("`\(setting.key)`"), "\(setting.key)")
        }
    }

    /// The key and the variable of each row with the columns key, default, meaning, variable, flag.
    private static func rows() throws -> [String: String] {
        var rows: [String: String] = [:]
        for line in try text().split(separator: "\n") where line.hasPrefix("| `") {
            let cells = line.split(separator: "|", omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: CharacterSet(charactersIn: " `")) }
            guard cells.count == 7, cells[4].hasPrefix("LARDER_") else { continue }
            rows[cells[1]] = cells[4]
        }
        return rows
    }

    private static func variable(of key: String) -> String {
        let variable = SettingsPath(dotted: key).variable
        let short = variable.replacingOccurrences(of: "LARDER_ACCESS_", with: "LARDER_")
        return SettingsSchema.shortVariables.contains(short) ? short : variable
    }

    private static func text() throws -> String {
        let file = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../docs/configuration.md")
            .standardized
        return try String(contentsOf: file, encoding: .utf8)
    }
}
