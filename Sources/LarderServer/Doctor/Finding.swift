import CacheCore

/// The result of one check of `larder doctor`.
struct Finding: Hashable, Sendable {
    /// The severity; the last case is the gravest.
    enum Level: String, Hashable, Sendable, CaseIterable { case ok, warning, error }

    /// The object of the check: a setting, or a part of the machine.
    let subject: String
    let level: Level
    /// One sentence; those of warnings and errors name a remedy.
    let sentence: String

    static func ok(_ subject: String, _ sentence: String) -> Self {
        Finding(subject: subject, level: .ok, sentence: sentence)
    }

    static func warning(_ subject: String, _ sentence: String) -> Self {
        Finding(subject: subject, level: .warning, sentence: sentence)
    }

    static func error(_ subject: String, _ sentence: String) -> Self {
        Finding(subject: subject, level: .error, sentence: sentence)
    }

    /// An error that prevents the start.
    init(_ error: SettingsError) { self.init(subject: error.key, level: .error, sentence: "It \(error.problem).") }

    /// An error that prevents the start, for a setting that the error does not name.
    init(_ error: CacheError, of subject: String) {
        if case .invalidField(let key) = error.code {
            self.init(subject: key, level: .error, sentence: error.message)
        } else {
            self.init(subject: subject, level: .error, sentence: error.sentence)
        }
    }

    private init(subject: String, level: Level, sentence: String) {
        self.subject = subject
        self.level = level
        self.sentence = sentence
    }
}

/// All findings of `larder doctor`.
struct DoctorReport: Hashable, Sendable {
    var findings: [Finding]

    /// 0: no warning, 1: warnings, 2: errors.
    var exitStatus: Int32 { if count(.error) > 0 { 2 } else if count(.warning) > 0 { 1 } else { 0 } }

    private func count(_ level: Finding.Level) -> Int { findings.count { $0.level == level } }

    /// One line per finding in aligned columns, and a summary line.
    var text: String {
        let width = findings.map(\.subject.count).max() ?? 0
        let lines = findings.map { finding in
            let level = finding.level.rawValue.padded(to: 7)
            return "\(level)  \(finding.subject.padded(to: width))  \(finding.sentence)"
        }
        let errors = FigureText.count(Int64(count(.error)), "error")
        let warnings = FigureText.count(Int64(count(.warning)), "warning")
        return (lines + ["\(errors), \(warnings)"]).joined(separator: "\n")
    }

    /// The same as a JSON document.
    var json: JSON {
        [
            "errors": .integer(Int64(count(.error))), "warnings": .integer(Int64(count(.warning))),
            "findings": .array(
                findings.map {
                    [
                        "subject": .string($0.subject), "level": .string($0.level.rawValue),
                        "message": .string($0.sentence),
                    ]
                }),
        ]
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}
