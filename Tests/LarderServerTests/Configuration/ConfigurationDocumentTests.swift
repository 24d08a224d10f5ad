import CacheCore
import Foundation
import Testing

@testable import LarderServer

/// The tables of docs/configuration.md are made from the settings of the program. After a change of a setting, run this
/// test once with the environment variable `UPDATE_DOCUMENTS=1`.
@Suite struct ConfigurationDocumentTests {
    private static let file = URL(fileURLWithPath: #filePath)
        .appendingPathComponent("../../../../docs/configuration.md").standardized

    @Test("docs/configuration.md contains each setting with its default and its meaning")
    func theTablesAreThoseOfTheSettings() throws {
        let settings = LarderSettings()
        var rows: [String: [String]] = [:]
        var order: [String] = []
        for setting in LarderSettings.settings {
            order.append(setting.key)
            rows[setting.key] =
                Self.cells(setting, settings)
                + [setting.isReloadable ? "yes" : "no", "`\(Self.variable(of: setting.key))`"]
        }
        let shared = Set(OriginSettings.sharedSettings.map(\.key))
        for setting in OriginSettings.settings where !shared.contains(setting.key) {
            order.append(setting.key)
            rows[setting.key] = Self.cells(setting, OriginSettings(baseURL: ""))
        }
        for setting in Quota.settings {
            order.append("policy.tagQuotas.<tag>.\(setting.key)")
            rows["policy.tagQuotas.<tag>.\(setting.key)"] = Self.cells(setting, Quota())
        }

        for setting in WebhookEntry.settings {
            order.append("webhooks.<name>.\(setting.key)")
            rows["webhooks.<name>.\(setting.key)"] = Self.cells(setting, WebhookEntry(name: "name"))
        }

        let text = try String(contentsOf: Self.file, encoding: .utf8)
        var expected: [String] = []
        for line in text.components(separatedBy: "\n") {
            let cells = line.components(separatedBy: " | ")
            let key = String(cells[0].dropFirst("| `".count).dropLast())
            guard line.hasPrefix("| `"), let row = rows.removeValue(forKey: key) else {
                expected.append(line)
                continue
            }
            expected.append(Self.line(cells, row))
            // A setting without a row gets one after the row of the setting before it.
            let others = order.drop { $0 != key }.dropFirst().prefix { !text.contains("\n| `\($0)`") }
            for other in others {
                if let row = rows.removeValue(forKey: other) { expected.append(Self.line(["| `\(other)`"], row)) }
            }
        }
        #expect(rows.keys.sorted() == [], "These settings have no row.")
        for key in shared { #expect(text.contains("`\(key)`"), "\(key)") }
        if ProcessInfo.processInfo.environment["UPDATE_DOCUMENTS"] == "1" {
            try Data(expected.joined(separator: "\n").utf8).write(to: Self.file)
        } else {
            #expect(text == expected.joined(separator: "\n"), "Run this test with UPDATE_DOCUMENTS=1.")
        }
    }

    @Test("Every variable in a document is read by the program")
    func everyVariableInADocumentIsRead() throws {
        let root = Self.file.deletingLastPathComponent().deletingLastPathComponent()
        let origins = OriginSettings.settings.map {
            SettingsPath(["", $0.key]).variable.dropFirst("LARDER_".count)
        }
        var count = 0
        for folder in ["", "docs", "docs/internals", "docs/decisions", "examples", "monitoring"] {
            let directory = root.appendingPathComponent(folder)
            for name in try FileManager.default.contentsOfDirectory(atPath: directory.path) {
                guard name.hasSuffix(".md") || name.hasSuffix("yaml") || name == "Dockerfile" else { continue }
                let text = try String(contentsOf: directory.appendingPathComponent(name), encoding: .utf8)
                for match in text.matches(of: /LARDER_[A-Z0-9_]*/) {
                    let variable = String(match.output)
                    // A beginning, such as `LARDER_ACCESS_JWT_…`.
                    let isKnown =
                        variable.hasSuffix("_")
                        ? (SettingsSchema.variables + ["LARDER_ORIGINS_", "LARDER_WEBHOOKS_"]).contains {
                            $0.hasPrefix(variable)
                        }
                        : SettingsSchema.variables.contains(variable) || SettingsSchema.isServiceLink(variable)
                            || variable.hasPrefix("LARDER_ORIGINS_") && origins.contains { variable.hasSuffix($0) }
                    #expect(isKnown, "\(folder)/\(name): \(variable)")
                    count += 1
                }
            }
        }
        #expect(count > 100)
    }

    /// A row of the document. `cells`: the present one.
    private static func line(_ cells: [String], _ row: [String]) -> String {
        // The flags are not part of the settings.
        let flag = cells.count > 5 ? cells[5] : row.count > 3 ? "|" : ""
        return ([cells[0]] + row).joined(separator: " | ") + (flag.isEmpty ? " |" : " | \(flag)")
    }

    /// The default and the meaning of a setting.
    private static func cells<Root>(_ setting: Setting<Root>, _ defaults: Root) -> [String] {
        let text =
            switch setting.write(defaults) {
            case .scalar(""): "required"
            case .scalar(let text): "`\(text)`"
            case .list(let items): items.isEmpty ? "none" : "`\(items)`"
            case nil: "–"
            }
        return [text, setting.meaning]
    }

    private static func variable(of key: String) -> String {
        let variable = SettingsPath(dotted: key).variable
        let short = variable.replacingOccurrences(of: "LARDER_ACCESS_", with: "LARDER_")
        return SettingsSchema.shortVariables.contains(short) ? short : variable
    }
}
