#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// System calls that `import Glibc` does not declare, or that Swift cannot call (open is variadic). Each function makes
// the named call and, unless stated otherwise, returns -1 and sets errno on failure. The bodies are in CLinux.c,
// because feature macros have no effect on headers that Swift imports as modules.

/// Access mode of `larder_open`: O_RDONLY, or O_RDWR with the creation flags below. O_CLOEXEC | O_NOFOLLOW is always
/// set.
enum larder_open_mode {
    LARDER_OPEN_READ_ONLY = 0,
    LARDER_OPEN_READ_WRITE = 1,
    /// O_RDWR | O_CREAT | O_EXCL: the file must not exist.
    LARDER_OPEN_CREATE = 2,
    /// O_RDWR | O_CREAT: the file may exist.
    LARDER_OPEN_OR_CREATE = 3,
};

/// open(2), relative to the working directory. Files are created with mode 0600.
int larder_open(const char *_Nonnull path, enum larder_open_mode mode);

/// openat2(2) with RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS, relative to `directory`, read-only. Fails with EXDEV if
/// `path` leads out of the directory by `..`, a link or a leading slash. Does not wait for the other end of a pipe.
int larder_open_below(const char *_Nonnull directory, const char *_Nonnull path);

/// fallocate(2) with FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE: deallocates the blocks; the bytes read as zeros.
int larder_punch_hole(int descriptor, int64_t offset, int64_t length);

/// fallocate(2): allocates every block of the first `length` bytes. Their content is unchanged.
int larder_allocate(int descriptor, int64_t length);

/// lseek(2) with SEEK_DATA: offset of the first byte at or after `offset` that is not in a hole.
int64_t larder_seek_data(int descriptor, int64_t offset);

/// lseek(2) with SEEK_HOLE: offset of the first hole at or after `offset`, or the end of the file.
int64_t larder_seek_hole(int descriptor, int64_t offset);

/// preadv2(2) with RWF_NOWAIT: reads only from the page cache. Fails with EAGAIN if it would wait for the disk.
ssize_t larder_read_nowait(int descriptor, void *_Nonnull bytes, size_t count, int64_t offset);

/// cachestat(2), since Linux 6.5: number of pages of the range in the page cache; -1 if the kernel does not report it.
int64_t larder_cached_pages(int descriptor, int64_t offset, int64_t length);

/// Number of pages that a range touches.
int64_t larder_pages(int64_t offset, int64_t length);

/// sync_file_range(2) with SYNC_FILE_RANGE_WRITE: starts the write of all dirty pages, and does not wait for its end.
int larder_start_write(int descriptor);

/// posix_fadvise(2) with POSIX_FADV_DONTNEED: drops the range's pages from the page cache, except dirty pages and pages
/// that are still referenced.
int larder_drop_pages(int descriptor, int64_t offset, int64_t length);

/// Size in bytes of the largest folio of the page cache: the memory that one page of page table entries maps.
int64_t larder_largest_folio(void);

/// prctl(2) with PR_SET_DUMPABLE 0: no core dumps, and no tracing by other processes of the user.
int larder_forbid_dumps(void);

/// flock(2) with LOCK_NB: fails with EWOULDBLOCK if another open file description holds the lock; both may hold a shared one.
int larder_lock(int descriptor, int is_shared);

/// statvfs(3): bytes that an unprivileged process can still write to the file system of `path`.
int64_t larder_free_bytes(const char *_Nonnull path);

/// statvfs(3): size in bytes of the file system of `path`; -1 if it is unknown.
int64_t larder_disk_bytes(const char *_Nonnull path);

/// statfs(2): type of the file system of `path`, a magic number; -1 if it is unknown.
int64_t larder_file_system(const char *_Nonnull path);

/// adjtimex(2): whether the kernel reports that the wall clock is synchronized; -1 if it is unknown.
int larder_clock_is_synchronized(void);

/// sched_getaffinity(2): number of processor cores that this process may use.
int larder_usable_cores(void);

/// mallopt(3): limits the number of heaps that threads share (M_ARENA_MAX), and returns blocks larger than 1 MiB to the
/// system as soon as they are freed (M_MMAP_THRESHOLD). No effect unless the C library is glibc.
void larder_limit_heaps(int count);

/// mallinfo2(3): bytes that the process has allocated from the C library, those of large blocks included; -1 unless the
/// C library is glibc. Takes the lock of each heap for a moment.
int64_t larder_allocated_bytes(void);

/// malloc_trim(3): returns the free pages of all heaps to the system. It holds the lock of a heap while it walks through
/// it, so it must not run on an event loop. No effect unless the C library is glibc.
void larder_trim_heaps(void);

/// CRC-32C (RFC 3720 §12.1) of bytes, continued from `sum`, the checksum of the preceding bytes (0: none). Uses the
/// processor's instruction (SSE4.2, ARMv8 CRC) if available, otherwise tables.
uint32_t larder_crc32c(uint32_t sum, const void *_Nullable bytes, size_t count);

/// As `larder_crc32c`, always with tables.
uint32_t larder_crc32c_by_table(uint32_t sum, const void *_Nullable bytes, size_t count);

/// Whether the processor has the CRC-32C instruction.
bool larder_crc32c_has_instruction(void);
