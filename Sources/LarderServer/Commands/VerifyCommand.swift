import ArgumentParser
import CacheAPI
import CacheCore
import CacheStore
import Logging

/// `larder verify`: compares catalog, files and checksums of a store that no service uses.
struct VerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Compare a store's catalog, files and checksums, offline.",
        discussion: """
            Reads everything. Exit 0: all is as it should be, or was put right by --repair. 1: something is not. 2: it could \
            not be looked at.
            """)

    @OptionGroup var options: StoreOptions
    @OptionGroup var output: OutputOptions

    @Flag(name: .long, help: "Take out what is wrong, so that the rest is right.")
    var repair = false

    func run() async throws {
        let directory = try options.dataDirectoryOrExit()
        let audit: Audit
        do throws(CacheError) {
            audit = try await Self.audit(directory, repairing: repair)
        } catch {
            StandardError.write("larder: \(error.sentence)\n")
            throw ExitCode(2)
        }
        print(output.isJSON ? audit.json : audit.table)
        if !audit.findings.isEmpty, !audit.isRepaired { throw ExitCode(1) }
    }

    private static func audit(_ directory: String, repairing: Bool) async throws(CacheError) -> Audit {
        guard try SystemDisk().status(of: StoreLayout(directory: directory).catalog) != nil else {
            throw CacheError(.notFound, "There is no store in \(directory).")
        }
        var logger = Logger(label: "larder")
        logger.logLevel = .critical
        let store = try Store.open(
            directory: directory, mayLose: false, wallClock: SystemWallClock(), logger: logger)
        let audit: Audit
        do throws(CacheError) {
            audit = try await store.audit(repairing: repairing)
        } catch {
            try store.close()
            throw error
        }
        try store.close()
        return audit
    }
}

/// `larder export`: copies one complete asset out of a store.
struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Copy a complete asset out of a store, in use or not.",
        discussion: "Every byte is compared with its checksum on the way. Nothing in the store is changed.")

    @OptionGroup var options: StoreOptions
    @OptionGroup var output: OutputOptions

    @Argument(help: "The asset's identifier, or its key.")
    var asset: String

    @Argument(help: "The file to write; it must not be there.")
    var file: String

    func run() throws {
        let directory = try options.dataDirectoryOrExit()
        do throws(CacheError) {
            let bytes = try Export.copy(asset, from: directory, to: file)
            output.write("\(bytes) bytes", json: ["bytes": .integer(bytes)])
        } catch {
            StandardError.write("larder: \(error.sentence)\n")
            throw ExitCode.failure
        }
    }
}
