#include "CRecordingVFS.h"

#include <sqlite3.h>
#include <stddef.h>

static sqlite3_vfs layer;
static sqlite3_vfs *base;
static larder_vfs_wants wants;
static larder_vfs_note note;

/// An open file that is told of; the system's own lies behind it.
typedef struct {
    sqlite3_file file;
    /// SQLite keeps it until the file is closed.
    const char *path;
    /// With the first sync of a new journal or log its directory is synced, too, as the system's layer does.
    bool syncs_directory;
    /// As that one has aligned it.
    _Alignas(sqlite3_int64) unsigned char real[];
} recorded;

static sqlite3_file *real(sqlite3_file *file) { return (sqlite3_file *)((recorded *)file)->real; }

static const char *path_of(sqlite3_file *file) { return ((recorded *)file)->path; }

static int closed(sqlite3_file *file) { return real(file)->pMethods->xClose(real(file)); }

static int read_bytes(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
    return real(file)->pMethods->xRead(real(file), bytes, count, offset);
}

static int write_bytes(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    int code = real(file)->pMethods->xWrite(real(file), bytes, count, offset);
    if (code == SQLITE_OK) note(LARDER_VFS_WRITE, path_of(file), offset, bytes, count);
    return code;
}

static int truncated(sqlite3_file *file, sqlite3_int64 size) {
    int code = real(file)->pMethods->xTruncate(real(file), size);
    if (code == SQLITE_OK) note(LARDER_VFS_TRUNCATE, path_of(file), size, NULL, 0);
    return code;
}

static int synced(sqlite3_file *file, int flags) {
    recorded *self = (recorded *)file;
    (void)flags;
    note(LARDER_VFS_SYNC, self->path, 0, NULL, 0);
    if (self->syncs_directory) note(LARDER_VFS_SYNC_DIRECTORY, self->path, 0, NULL, 0);
    self->syncs_directory = false;
    return SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size) {
    return real(file)->pMethods->xFileSize(real(file), size);
}

static int lock(sqlite3_file *file, int level) { return real(file)->pMethods->xLock(real(file), level); }

static int unlock(sqlite3_file *file, int level) { return real(file)->pMethods->xUnlock(real(file), level); }

static int is_reserved(sqlite3_file *file, int *answer) {
    return real(file)->pMethods->xCheckReservedLock(real(file), answer);
}

static int control(sqlite3_file *file, int operation, void *argument) {
    return real(file)->pMethods->xFileControl(real(file), operation, argument);
}

static int sector_size(sqlite3_file *file) { return real(file)->pMethods->xSectorSize(real(file)); }

static int characteristics(sqlite3_file *file) { return real(file)->pMethods->xDeviceCharacteristics(real(file)); }

static int shm_map(sqlite3_file *file, int region, int size, int extends, void volatile **memory) {
    return real(file)->pMethods->xShmMap(real(file), region, size, extends, memory);
}

static int shm_lock(sqlite3_file *file, int offset, int count, int flags) {
    return real(file)->pMethods->xShmLock(real(file), offset, count, flags);
}

static void shm_barrier(sqlite3_file *file) { real(file)->pMethods->xShmBarrier(real(file)); }

static int shm_unmap(sqlite3_file *file, int deletes) { return real(file)->pMethods->xShmUnmap(real(file), deletes); }

/// Of version 2: SQLite maps no file into memory through it.
static const sqlite3_io_methods methods = {
    2,           closed,   read_bytes, write_bytes,  truncated, synced,      file_size,       lock,
    unlock,      is_reserved, control, sector_size,  characteristics, shm_map, shm_lock,      shm_barrier,
    shm_unmap,   NULL,     NULL,
};

static int open_file(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *opened_flags) {
    (void)vfs;
    if (!path || !wants(path)) return base->xOpen(base, path, file, flags, opened_flags);
    int exists = 0;
    base->xAccess(base, path, SQLITE_ACCESS_EXISTS, &exists);
    recorded *self = (recorded *)file;
    self->file.pMethods = NULL;
    int code = base->xOpen(base, path, real(file), flags, opened_flags);
    if (code != SQLITE_OK) return code;
    const int journals = SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL;
    self->path = path;
    self->syncs_directory = (flags & SQLITE_OPEN_CREATE) && (flags & journals);
    self->file.pMethods = &methods;
    if (!exists) note(LARDER_VFS_CREATE, path, 0, NULL, 0);
    return SQLITE_OK;
}

static int delete_file(sqlite3_vfs *vfs, const char *path, int syncs_directory) {
    (void)vfs;
    bool is_wanted = wants(path);
    int code = base->xDelete(base, path, is_wanted ? 0 : syncs_directory);
    if (code != SQLITE_OK || !is_wanted) return code;
    note(LARDER_VFS_DELETE, path, 0, NULL, 0);
    if (syncs_directory) note(LARDER_VFS_SYNC_DIRECTORY, path, 0, NULL, 0);
    return SQLITE_OK;
}

int larder_vfs_install(larder_vfs_wants whether, larder_vfs_note teller) {
    base = sqlite3_vfs_find(NULL);
    if (!base) return SQLITE_ERROR;
    wants = whether;
    note = teller;
    layer = *base;
    layer.zName = "recording";
    layer.szOsFile = (int)sizeof(recorded) + base->szOsFile;
    layer.xOpen = open_file;
    layer.xDelete = delete_file;
    return sqlite3_vfs_register(&layer, 1);
}
