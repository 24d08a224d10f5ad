import Foundation
import PackagePlugin

/// Embeds the text of `openapi.yaml` in the executable as `EmbeddedDocument.openAPI`, so that the installation is one
/// file.
@main
struct EmbedDocument: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let document = context.package.directoryURL.appending(path: "openapi.yaml")
        let source = context.pluginWorkDirectoryURL.appending(path: "EmbeddedDocument.swift")
        let script = """
            { echo 'enum EmbeddedDocument {'; echo 'static let openAPI = ###\"""'; cat "$1"; echo '\"""###'; echo '}'; } > "$2"
            """
        return [
            .buildCommand(
                displayName: "Embedding openapi.yaml", executable: URL(filePath: "/bin/sh"),
                arguments: ["-c", script, "sh", document.path(), source.path()], inputFiles: [document],
                outputFiles: [source])
        ]
    }
}
