import Foundation
import PackagePlugin

/// Embeds `openapi.yaml` and the files of the dashboard in the executable as `EmbeddedDocument`, so that the installation
/// is one file.
@main
struct EmbedDocument: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let directory = context.package.directoryURL
        let dashboard = directory.appending(path: "Sources/LarderServer/Dashboard")
        let files = try FileManager.default.contentsOfDirectory(at: dashboard, includingPropertiesForKeys: nil)
            .filter { !$0.lastPathComponent.hasPrefix(".") }.sorted { $0.path < $1.path }
        let inputs = [directory.appending(path: "openapi.yaml")] + files
        let source = context.pluginWorkDirectoryURL.appending(path: "EmbeddedDocument.swift")
        let script = """
            output=$1 document=$2; shift 2
            text() { printf '###\"""\\n'; cat "$1"; printf '\\n\"""###'; }
            {
                echo 'enum EmbeddedDocument {'
                printf 'static let openAPI = '; text "$document"; echo
                echo 'static let dashboard: [(name: String, text: String)] = ['
                for file; do printf '("%s", ' "${file##*/}"; text "$file"; echo '),'; done
                echo ']'
                echo '}'
            } > "$output"
            """
        return [
            .buildCommand(
                displayName: "Embedding openapi.yaml and the dashboard", executable: URL(filePath: "/bin/sh"),
                arguments: ["-c", script, "sh", source.path()] + inputs.map { $0.path() }, inputFiles: inputs,
                outputFiles: [source])
        ]
    }
}
