#pragma once

#include <stdbool.h>
#include <stdint.h>

// A file layer of SQLite's that does what the system's does, and tells of it.

/// What SQLite has done to a file.
enum larder_vfs_call {
    LARDER_VFS_CREATE,
    /// `count` bytes at `offset`.
    LARDER_VFS_WRITE,
    /// To `offset` bytes.
    LARDER_VFS_TRUNCATE,
    LARDER_VFS_SYNC,
    /// The directory the file lies in.
    LARDER_VFS_SYNC_DIRECTORY,
    LARDER_VFS_DELETE,
};

/// Whether what is done to the file of that absolute path is to be told.
typedef bool (*larder_vfs_wants)(const char *_Nonnull path);

/// Told of each call that succeeded, on its thread.
typedef void (*larder_vfs_note)(
    enum larder_vfs_call call, const char *_Nonnull path, int64_t offset, const void *_Nullable bytes, int64_t count);

/// Makes this the layer of all databases that are opened from now on; answers SQLite's code. Once in a process.
///
/// The device is not asked to sync the files that are told of: whoever is told decides what is on it. The log's index
/// (`-shm`) is memory, and is not told of.
int larder_vfs_install(larder_vfs_wants _Nonnull wants, larder_vfs_note _Nonnull note);
