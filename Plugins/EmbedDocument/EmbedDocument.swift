import Foundation
import PackagePlugin

/// Puts the text of `openapi.yaml` into the executable, as `EmbeddedDocument.openAPI`, so that one file is all there is to
/// install.
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
