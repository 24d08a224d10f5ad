import CLinux
import CacheCore
import CacheStore
import Foundation

/// Checks of the machine: limits, kernel, clock, directory, free space and the permissions of files.
extension Doctor {
    /// The limits of the process, the kernel and the clock.
    static func machine(_ files: OpenFileBudget) -> [Finding] {
        [
            openFiles(files), kernel(kernelRelease()),
            clock(isSynchronized: larder_clock_is_synchronized(), now: SystemWallClock().now()),
        ]
    }

    static func openFiles(_ files: OpenFileBudget) -> Finding {
        do throws(SettingsError) { try files.check() } catch { return Finding(error) }
        let sentence =
            "The limit is \(files.limit): \(files.connections(wished: nil)) clients, \(files.assetFiles) files."
        guard files.limit >= 4096 else {
            return .warning("open files", sentence + " Raise it with LimitNOFILE= of the unit, or with ulimit -n.")
        }
        return .ok("open files", sentence)
    }

    /// - Parameter release: The release as in `6.1.0-18-amd64`.
    static func kernel(_ release: String) -> Finding {
        let numbers = release.split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
        guard numbers.count == 2, (numbers[0], numbers[1]) < (6, 5) else {
            return .ok("kernel", "The release is \(release).")
        }
        return .warning(
            "kernel", "Linux \(release) cannot use sendfile safely, so bytes are copied; 6.5 or later avoids that.")
    }

    /// - Parameter isSynchronized: 1, 0, or -1 if the kernel does not tell.
    static func clock(isSynchronized: Int32, now: Timestamp) -> Finding {
        // Signed URLs, certificates and lifetimes depend on the clock.
        guard now >= Timestamp(seconds: 1_767_225_600) else {  // 2026-01-01
            return .error("clock", "The time is \(RFC3339.format(now)), which is in the past; set the clock.")
        }
        guard isSynchronized == 0 else { return .ok("clock", "The time is \(RFC3339.format(now)).") }
        return .warning(
            "clock",
            "The kernel reports no synchronization. Run an NTP client, unless the host of this machine does.")
    }

    /// The findings about the data directory, and the process that uses it.
    static func dataDirectory(_ path: String) -> (findings: [Finding], holder: String?) {
        let subject = "dataDirectory"
        guard let access = FilePermissions(of: path) else {
            let parent = URL(fileURLWithPath: path).deletingLastPathComponent().path
            guard FilePermissions(of: parent)?.isUsable == true else {
                return ([.error(subject, "\(path) cannot be created; create \(parent) for this user.")], nil)
            }
            return ([.ok(subject, "\(path) does not exist; the start creates it."), fileSystem(of: parent)], nil)
        }
        guard access.isUsable else {
            return ([.error(subject, "This user cannot change \(path); run as the user of the service.")], nil)
        }
        var findings: [Finding] = []
        if access.isOpenToOthers {
            findings.append(.warning(subject, "Other users have access to \(path); remove it with chmod 0700."))
        }
        let holder: String?
        do throws(CacheError) {
            let store = try StoreInspection(directory: path)
            holder = store.holder
            let use = holder.map { "It is in use by \($0)." } ?? "No process uses it."
            findings.append(
                .ok(subject, store.hasCatalog ? "\(path) has a store. \(use)" : "\(path) has no store. \(use)"))
        } catch {
            return (findings + [Finding(error, of: subject)], nil)
        }
        return (findings + [fileSystem(of: path)], holder)
    }

    /// Tests holes with a temporary file, as the start does.
    private static func fileSystem(of path: String) -> Finding {
        let subject = "file system"
        do throws(CacheError) {
            let holes = try SystemDisk().holes(in: path)
            guard holes.canBePunched, holes.areSparse else {
                return .warning(
                    subject,
                    "\(path) does not support sparse files with holes, so whole files are evicted; use ext4 or XFS.")
            }
        } catch {
            return Finding(error, of: subject)
        }
        return switch larder_file_system(path) {
        case 0x6969, 0xFF53_4D42, 0xFE53_4D42, 0x517B, 0x6573_5546, 0x0102_1997:  // NFS, CIFS, SMB, FUSE, 9P
            .warning(subject, "\(path) is on a network or FUSE file system; use a local disk.")
        case 0x0102_1994: .warning(subject, "\(path) is on tmpfs: a restart of the machine loses the store.")  // tmpfs
        default: .ok(subject, "\(path) supports sparse files with holes.")
        }
    }

    /// Compares the capacity with the file system.
    static func space(for settings: LarderSettings) -> [Finding] {
        let parent = URL(fileURLWithPath: settings.dataDirectory).deletingLastPathComponent().path
        let path = FilePermissions(of: settings.dataDirectory) == nil ? parent : settings.dataDirectory
        let (size, free) = (larder_disk_bytes(path), larder_free_bytes(path))
        guard size >= 0, free >= 0 else { return [] }
        return [space(settings.policy, size: size, free: free)]
    }

    /// - Parameters:
    ///   - size: The bytes of the file system.
    ///   - free: The free ones of them.
    static func space(_ policy: PolicySettings, size: Int64, free: Int64) -> Finding {
        if free < policy.minFreeDiskBytes {
            return .warning(
                "policy.minFreeDisk",
                "Only \(FigureText.bytes(free)) are free, so nothing more is stored; free space or lower the value.")
        }
        guard let capacity = policy.capacityBytes else {
            return .ok("policy.capacity", "\(FigureText.bytes(free)) are free; policy.minFreeDisk limits the store.")
        }
        guard capacity <= size - policy.minFreeDiskBytes else {
            return .warning(
                "policy.capacity",
                "The file system has \(FigureText.bytes(size)) only, less than the capacity and policy.minFreeDisk.")
        }
        return .ok("policy.capacity", "\(FigureText.bytes(free)) of \(FigureText.bytes(size)) are free.")
    }

    /// Files with secrets that all users can read.
    static func secretFiles(of settings: LarderSettings) -> [Finding] {
        let (access, listen) = (settings.access, settings.listen)
        let files = [
            ("access.tokenFile", access.tokenFile), ("access.readTokenFile", access.readTokenFile),
            ("access.tokensFile", access.tokensFile), ("access.signing.keysDirectory", access.signing.keysDirectory),
            ("listen.tls.keyFile", listen.keyFile), ("credentialsDirectory", settings.credentialsDirectory),
            ("telemetry.traces.headersFile", settings.telemetry.headersFile),
            ("fleet.keyFile", settings.fleet.keyFile), ("fleet.tls.keyFile", settings.fleet.certificateKeyFile),
        ]
        return files.compactMap { key, path in
            guard let path, FilePermissions(of: path)?.isReadableByOthers == true else { return nil }
            return .warning(key, "All users can read \(path); remove the permission with chmod o-rwx.")
        }
    }

    private static func kernelRelease() -> String {
        var name = utsname()
        uname(&name)
        return withUnsafeBytes(of: &name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}

/// The permissions of a file or directory.
struct FilePermissions {
    private let mode: mode_t
    /// Whether this process can read and change it.
    let isUsable: Bool

    /// Nil if there is no such file, or if it cannot be examined.
    init?(of path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        mode = status.st_mode
        isUsable = access(path, R_OK | W_OK | X_OK) == 0
    }

    var isReadableByOthers: Bool { mode & S_IROTH != 0 }
    var isWritableByOthers: Bool { mode & S_IWOTH != 0 }
    /// Whether any other user than the owner has access.
    var isOpenToOthers: Bool { mode & (S_IRWXG | S_IRWXO) != 0 }
}
