import Foundation

// EvictionBench PARTS FOLDER…: parts, separated by commas: golden, media, curve, restart, speed, switch; none: all.
// `fleet` is not among all; numbers of nodes, such as 3,10,30, stand for it.
let words = CommandLine.arguments.dropFirst().first.map { $0.split(separator: ",").map(String.init) } ?? []
let sizes = words.compactMap { Int($0) }.filter { $0 > 1 }
let parts = words.filter { Int($0) == nil } + (sizes.isEmpty ? [] : ["fleet"])
let folders = Array(CommandLine.arguments.dropFirst(2))
let unknown = Set(parts).subtracting(["golden", "media", "curve", "restart", "speed", "switch", "fleet"])
var isWellDone = unknown.isEmpty
if !unknown.isEmpty { print("unknown parts: \(unknown.sorted().joined(separator: ", "))") }

/// The folder that contains the file.
func folder(of file: String) -> String? {
    let found = folders.first { FileManager.default.fileExists(atPath: "\($0)/\(file)") }
    if found == nil { print("\(file) is in none of the given folders and is skipped") }
    return found
}

func isAsked(_ part: String) -> Bool { parts.isEmpty || parts.contains(part) }

if isAsked("golden"), let folder = folder(of: "cloudPhysicsIO.csv.gz") {
    isWellDone = try GoldenCheck(folder: folder).run() && isWellDone
}
if isAsked("media") || isAsked("curve") || isAsked("restart") || parts.contains("fleet") {
    for name in MediaCheck.targets.keys.sorted() {
        guard let folder = folder(of: name + ".runs.csv.gz") else { continue }
        let trace = try MediaTrace(named: name, in: folder)
        if isAsked("media") { isWellDone = MediaCheck(trace: trace).run() && isWellDone }
        if isAsked("restart") { isWellDone = RestartCheck(trace: trace).run() && isWellDone }
        if parts.contains("fleet") { FleetTable(trace: trace, sizes: sizes.isEmpty ? [3, 10, 30] : sizes).print() }
        if isAsked("curve") { isWellDone = CurveCheck(trace: trace).run() && isWellDone }
    }
}
if isAsked("speed") { isWellDone = SpeedCheck(segments: 1_000_000).run() && isWellDone }
if isAsked("switch") { isWellDone = SwitchCheck(segments: 300_000).run() && isWellDone }
exit(isWellDone ? 0 : 1)
