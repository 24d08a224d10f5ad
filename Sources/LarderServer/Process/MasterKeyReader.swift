import CacheCore
import CacheStore
import Foundation
import NIOPosix
import ReaderAccess
import WebTokens

/// Reads master keys: those of `encryption.keysDirectory`, and with `encryption.keyCommand` the others that are needed.
///
/// No error contains a part of a key or of the output of the command.
struct MasterKeyReader: Sendable {
    let settings: EncryptionSettings

    /// The time limit of the command, for all keys together.
    private static let commandLimit = DispatchTimeInterval.seconds(10)
    /// The largest file, and the longest output of the command, in bytes.
    private static let mostBytes = 4096
    private static let mostFiles = 256

    /// As ``read(used:)``, on a thread that may block.
    func readInBackground(used: [String]) async throws(CacheError) -> MasterKeys.Content {
        let outcome = try? await NIOThreadPool.singleton.runIfActive {
            Result { () throws(CacheError) in try read(used: used) }
        }
        guard let outcome else { throw CacheError(.shuttingDown, "The service is shutting down.") }
        return try outcome.get()
    }

    /// The keys of the directory, and those of the command among the active one and `used`. A key of `used` that the
    /// command does not print is missing. Blocks.
    ///
    /// Throws `.invalidField` with the setting if a file is no key, if two files have one identifier, or if the command
    /// fails for the active key.
    func read(used: [String]) throws(CacheError) -> MasterKeys.Content {
        var content = MasterKeys.Content(
            activeID: settings.activeKey, onMissingKey: settings.onMissingKey, onChange: settings.onChange)
        if let directory = settings.keysDirectory { content.keys = try keys(in: directory) }
        if !settings.keyCommand.isEmpty {
            // The active key first: the others must not use up its time.
            let deadline = DispatchTime.now() + Self.commandLimit
            for id in [settings.activeKey].compactMap(\.self) + used.filter({ $0 != settings.activeKey })
            where TokensFile.isIdentifier(id) && !content.keys.contains(where: { $0.id == id }) {
                do throws(CacheError) {
                    content.keys.append(try keyOfCommand(id, until: deadline))
                } catch {
                    guard id != settings.activeKey else { throw error }
                }
            }
        }
        if let active = settings.activeKey, content.active == nil {
            throw .invalid(
                "encryption.activeKey", "There is no master key \"\(active)\"; add it to encryption.keysDirectory.")
        }
        return content
    }

    // MARK: Files

    private func keys(in directory: String) throws(CacheError) -> [MasterKey] {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
        } catch {
            throw fault("\"\(directory)\" cannot be read; check its path and permissions.")
        }
        guard names.count <= Self.mostFiles else { throw fault("The directory has more than \(Self.mostFiles) files.") }
        var keys: [MasterKey] = []
        for name in names where !name.hasPrefix(".") {
            let path = directory + "/" + name
            guard FileManager.default.isDirectory(path) == false else { continue }
            let id = String(name.prefix(upTo: name.dropFirst().lastIndex(of: ".") ?? name.endIndex))
            guard TokensFile.isIdentifier(id) else {
                throw fault("The name of the key file \(name) must have 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'.")
            }
            guard !keys.contains(where: { $0.id == id }) else {
                throw fault("Two key files have the identifier \"\(id)\"; rename or remove one.")
            }
            guard FilePermissions(of: path)?.isOpenToOthers == false else {
                throw fault("Other users can read the key file \(name); set its mode to 0600.")
            }
            guard Self.isSmallFile(path) else {
                throw fault("The key file \(name) must be a regular file of at most \(Self.mostBytes) bytes.")
            }
            guard let bytes = FileManager.default.contents(atPath: path) else {
                throw fault("The key file \(name) cannot be read; check its permissions.")
            }
            guard let key = Self.key(Array(bytes)) else {
                throw fault(
                    "The key file \(name) must have 32 random bytes, 64 hexadecimal digits, or Base64 of 32 bytes.")
            }
            keys.append(MasterKey(id: id, key: key))
        }
        return keys
    }

    private func fault(_ message: String) -> CacheError { .invalid("encryption.keysDirectory", message) }

    /// The 32 bytes of a key: as they are, or as one line of hexadecimal digits or Base64. Nil for anything else.
    static func key(_ bytes: [UInt8]) -> [UInt8]? {
        // A text of 32 characters has far fewer random bits than a key.
        if bytes.count == 32 {
            return bytes.allSatisfy { (0x20...0x7E).contains($0) || [9, 10, 13].contains($0) } ? nil : bytes
        }
        guard bytes.count <= mostBytes else { return nil }
        let line = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        let key =
            line.utf8.count == 64
            ? [UInt8](hexDigits: line) : Data(base64Encoded: line).map(Array.init) ?? Base64URL.decode(line)
        return key?.count == 32 ? key : nil
    }

    /// Whether the path leads to a regular file of a permitted size; reading a pipe could wait for ever.
    private static func isSmallFile(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_size <= mostBytes
    }

    // MARK: Command

    private func keyOfCommand(_ id: String, until deadline: DispatchTime) throws(CacheError) -> MasterKey {
        func fault(_ reason: String) -> CacheError {
            .invalid("encryption.keyCommand", "The command for the master key \"\(id)\" \(reason).")
        }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: settings.keyCommand[0])
        process.arguments = settings.keyCommand.dropFirst() + [id]
        process.environment = [:]
        process.standardInput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        let output = Pipe()
        process.standardOutput = output
        let ended = DispatchSemaphore(value: 0)
        process.terminationHandler = { _ in ended.signal() }
        do { try process.run() } catch { throw fault("cannot be started; check its path and permissions") }
        // The output is read beside the process, and at most this much, so that neither waits for the other.
        let reading = Reading(output.fileHandleForReading, limit: Self.mostBytes)
        guard ended.wait(timeout: deadline) == .success else {
            kill(process.processIdentifier, SIGKILL)
            throw fault("has not ended within 10 s")
        }
        guard process.terminationReason == .exit, process.terminationStatus == 0 else {
            throw fault("has failed with exit status \(process.terminationStatus)")
        }
        guard let bytes = reading.result(within: .seconds(1)), let key = Self.key(bytes) else {
            throw fault("must print 32 bytes, 64 hexadecimal digits, or Base64 of 32 bytes")
        }
        return MasterKey(id: id, key: key)
    }

    /// The output of a process, read on a thread of its own.
    private final class Reading: @unchecked Sendable {  // `bytes` is written before `done` is signalled
        private var bytes: [UInt8] = []
        private let done = DispatchSemaphore(value: 0)

        init(_ handle: FileHandle, limit: Int) {
            Thread.detachNewThread { [self] in
                while bytes.count <= limit {
                    let data = handle.availableData
                    guard !data.isEmpty else { break }
                    bytes += data
                }
                try? handle.close()  // a program that prints more ends
                done.signal()
            }
        }

        /// The bytes up to the end of the output; nil if it has not ended in time.
        func result(within limit: DispatchTimeInterval) -> [UInt8]? {
            done.wait(timeout: .now() + limit) == .success ? bytes : nil
        }
    }
}

extension LarderSettings {
    /// Throws `.invalidField` if an origin of the configuration is encrypted and no master key is there.
    func checkMasterKey(_ keys: MasterKeys.Content) throws(CacheError) {
        guard keys.active == nil, let origin = origins.first(where: \.settings.isEncrypted) else { return }
        throw .invalid(
            "encryption.keysDirectory", "There is no master key for the encrypted origin \(origin.name); add one.")
    }
}

extension FileManager {
    /// Whether the path leads to a directory; nil if it leads to nothing.
    fileprivate func isDirectory(_ path: String) -> Bool? {
        var isDirectory: ObjCBool = false
        return fileExists(atPath: path, isDirectory: &isDirectory) ? isDirectory.boolValue : nil
    }
}
