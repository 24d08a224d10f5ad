import Foundation
import PackagePlugin

/// Embeds `openapi.yaml`, the files of the dashboard and those of `monitoring` in the executable as `EmbeddedDocument`, so
/// that the installation is one file.
@main
struct EmbedDocument: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let directory = context.package.directoryURL
        let texts = [
            ("openAPI", "openapi.yaml"), ("alertRules", "monitoring/larder.rules.yaml"),
            ("grafanaDashboard", "monitoring/grafana/larder.json"),
        ].map { (name: $0.0, file: directory.appending(path: $0.1)) }
        let dashboard = directory.appending(path: "Sources/LarderServer/Dashboard")
        let files = try FileManager.default.contentsOfDirectory(at: dashboard, includingPropertiesForKeys: nil)
            .filter { !$0.lastPathComponent.hasPrefix(".") }.sorted { $0.path < $1.path }
        let source = context.pluginWorkDirectoryURL.appending(path: "EmbeddedDocument.swift")
        // Arguments: the output, pairs of a name and a file, `--`, the files of the dashboard.
        let script = """
            output=$1; shift
            text() { printf '###\"""\\n'; cat "$1"; printf '\\n\"""###'; }
            {
                echo 'enum EmbeddedDocument {'
                while [ "$1" != -- ]; do printf 'static let %s = ' "$1"; text "$2"; echo; shift 2; done; shift
                echo 'static let dashboard: [(name: String, text: String)] = ['
                for file; do printf '("%s", ' "${file##*/}"; text "$file"; echo '),'; done
                echo ']'
                echo '}'
            } > "$output"
            """
        return [
            .buildCommand(
                displayName: "Embedding openapi.yaml, the dashboard and monitoring",
                executable: URL(filePath: "/bin/sh"),
                arguments: ["-c", script, "sh", source.path()] + texts.flatMap { [$0.name, $0.file.path()] } + ["--"]
                    + files.map { $0.path() },
                inputFiles: texts.map(\.file) + files, outputFiles: [source])
        ]
    }
}
