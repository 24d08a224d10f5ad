import ArgumentParser
import CacheAPI
import CacheCore
import CacheStore
import Logging

/// `larder verify`: verifies catalog, files and checksums of a store that no service uses.
///
/// Exit status 0: no findings, or all repaired. 1: findings. 2: the store could not be checked.
struct VerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Verify a store offline: catalog, files and checksums.",
        discussion: """
            Reads all bytes. Exit status 0: no problems, or all repaired by --repair. 1: problems found. 2: the store could \
            not be checked.
            """)

    @OptionGroup var options: StoreOptions
    @OptionGroup var output: OutputOptions

    @Flag(name: .long, help: "Remove damaged and inconsistent data.")
    var repair = false

    func run() async throws {
        let settings = try options.settingsOrExit()
        let audit: VerificationReport
        do throws(CacheError) {
            audit = try await Self.audit(settings, repairing: repair)
        } catch {
            output.report(ClientError(error))
            throw ExitCode(2)
        }
        print(output.isJSON ? audit.json : audit.table)
        if !audit.findings.isEmpty, !audit.isRepaired { throw ExitCode(1) }
    }

    /// Opens the store, verifies it and closes it. Throws `.notFound` if the directory contains no store.
    private static func audit(
        _ settings: LarderSettings, repairing: Bool
    ) async throws(CacheError) -> VerificationReport {
        let directory = settings.dataDirectory
        guard try SystemDisk().status(of: StoreLayout(directory: directory).catalog) != nil else {
            throw CacheError(.notFound, "There is no store in \(directory).")
        }
        var logger = Logger(label: "larder")
        logger.logLevel = .critical
        let store = try Store.open(
            directory: directory, mayLose: false, wallClock: SystemWallClock(), logger: logger)
        let meter = ProgressMeter.onTerminal
        let audit: VerificationReport
        do throws(CacheError) {
            defer { meter?.clear() }
            let used = try await store.masterKeyUse().map(\.id)
            store.masterKeys.replace(
                try await MasterKeyReader(settings: settings.encryption).readInBackground(used: used))
            audit = try await store.audit(repairing: repairing) { bytes, whole in
                meter?.show(ProgressLine(bytes: bytes, of: whole, verb: "verified"))
            }
        } catch {
            try store.close()
            throw error
        }
        try store.close()
        return audit
    }
}

/// `larder export`: copies a complete asset from a store to a new file. Exit status 1 if that fails.
struct ExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Copy a complete asset from a store to a file, also while a service uses the store.",
        discussion: "Verifies the checksum of every byte, and decrypts encrypted content. The store is not changed.")

    @OptionGroup var options: StoreOptions
    @OptionGroup var output: OutputOptions

    @Argument(help: "Identifier or key of the asset.")
    var asset: String

    @Argument(help: "File to write; it must not exist.")
    var file: String

    func run() async throws {
        let settings = try options.settingsOrExit()
        do throws(CacheError) {
            let keys = try await MasterKeyReader(settings: settings.encryption).readInBackground(used: [])
            let bytes = try copy(from: settings.dataDirectory, keys)
            output.write("\(bytes) bytes", json: ["bytes": .integer(bytes)])
        } catch {
            output.report(ClientError(error))
            throw ExitCode.failure
        }
    }
    /// Copies the asset with progress on standard error; returns the number of bytes.
    private func copy(from directory: String, _ keys: MasterKeys.Content) throws(CacheError) -> Int64 {
        let meter = ProgressMeter.onTerminal
        defer { meter?.clear() }
        return try Export.copy(asset, from: directory, to: file, masterKeys: keys) { bytes, whole in
            meter?.show(ProgressLine(bytes: bytes, of: whole, verb: "copied"))
        }
    }
}
