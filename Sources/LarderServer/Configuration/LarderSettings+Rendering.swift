import CacheCore

/// Output of the settings as YAML.
extension LarderSettings {
    /// The effective settings as a YAML file with the same meaning; credentials are masked.
    var rendered: String {
        var tree = SettingsTree()
        for setting in LarderSettings.settings where !isRead(from: setting.key) {
            if let text = setting.write(self) {
                tree.insert(text, at: setting.key.split(separator: ".").map(String.init))
            }
        }
        for (tag, quota) in policy.tagQuotas.sorted(by: { $0.key < $1.key }) {
            for setting in Quota.settings {
                if let text = setting.write(quota) {
                    tree.insert(text, at: SettingsSchema.tagQuotas + [tag, setting.key])
                }
            }
        }
        for origin in origins {
            let place = ["origins", origin.name]
            for setting in OriginSettings.settings {
                guard let text = setting.write(origin.settings) else { continue }
                tree.insert(text, at: place + setting.key.split(separator: ".").map(String.init))
            }
            for field in origin.settings.headers.fields {
                tree.insert(.scalar(MaskedSecret.mask), at: place + ["headers", field.name])
            }
        }
        for webhook in webhooks {
            for setting in WebhookEntry.settings {
                guard let text = setting.write(webhook), text != .list([]) else { continue }
                let place = [SettingsSchema.webhooks, webhook.name]
                tree.insert(text, at: place + setting.key.split(separator: ".").map(String.init))
            }
        }
        return tree.lines(indentation: "").joined(separator: "\n") + "\n"
    }

    /// Whether the token was read from a file; then the file is printed instead.
    private func isRead(from key: String) -> Bool {
        key == "access.token" && access.tokenFile != nil || key == "access.readToken" && access.readTokenFile != nil
    }
}

/// Nested settings in insertion order.
private struct SettingsTree {
    private enum Branch {
        case group(SettingsTree)
        case leaf(SettingText)
    }

    private var branches: [(name: String, branch: Branch)] = []

    /// Inserts a value and creates the groups of its path.
    mutating func insert(_ text: SettingText, at path: [String]) {
        guard let name = path.first else { return }
        let rest = Array(path.dropFirst())
        guard !rest.isEmpty else {
            branches.append((name, .leaf(text)))
            return
        }
        guard let index = branches.firstIndex(where: { $0.name == name }),
            case .group(var group) = branches[index].branch
        else {
            var group = SettingsTree()
            group.insert(text, at: rest)
            branches.append((name, .group(group)))
            return
        }
        group.insert(text, at: rest)
        branches[index].branch = .group(group)
    }

    /// The YAML lines of the tree.
    func lines(indentation: String) -> [String] {
        branches.flatMap { name, branch in
            switch branch {
            case .group(let group):
                ["\(indentation)\(Self.quoted(name)):"] + group.lines(indentation: indentation + "  ")
            case .leaf(.scalar(let text)): ["\(indentation)\(Self.quoted(name)): \(Self.quoted(text))"]
            case .leaf(.list(let texts)):
                ["\(indentation)\(name): [\(texts.map(Self.quoted).joined(separator: ", "))]"]
            }
        }
    }

    /// The text as a plain YAML scalar if YAML reads it unchanged, else in double quotes.
    private static func quoted(_ text: String) -> String {
        let isPlain = text.first.map { $0.isLetter || $0.isNumber || "./•".contains($0) } ?? false
        let isSafe = text.allSatisfy { $0.isLetter || $0.isNumber || "./_-•:+".contains($0) }
        if isPlain, isSafe, !text.hasSuffix(":") { return text }
        let escaped = text.flatMap { $0 == "\"" || $0 == "\\" ? ["\\", $0] : [$0] }
        return "\"\(String(escaped))\""
    }
}
