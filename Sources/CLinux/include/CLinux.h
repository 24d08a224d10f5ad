#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// What `import Glibc` does not show, or cannot call (open is variadic). Each function is the system call of its name:
// it answers -1 and sets errno where that fails. Bodies are in CLinux.c, because feature macros have no effect on
// headers that Swift imports as modules.

/// O_RDONLY, or O_RDWR with one of the creation modes below; always O_CLOEXEC | O_NOFOLLOW.
enum larder_open_mode {
    LARDER_OPEN_READ_ONLY = 0,
    LARDER_OPEN_READ_WRITE = 1,
    /// O_CREAT | O_EXCL: the file must not exist.
    LARDER_OPEN_CREATE = 2,
    /// O_CREAT: the file may exist.
    LARDER_OPEN_OR_CREATE = 3,
};

/// openat(2) from the working directory, with mode 0600 for what is created.
int larder_open(const char *_Nonnull path, enum larder_open_mode mode);

/// openat2(2) with RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS below directory, to read: EXDEV where path leads out of it, by
/// `..`, a link or a leading slash. Does not wait for a pipe's other end.
int larder_open_below(const char *_Nonnull directory, const char *_Nonnull path);

/// fallocate(2) with FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE: the bytes read as zeros, their blocks are free.
int larder_punch_hole(int descriptor, int64_t offset, int64_t length);

/// fallocate(2): every block of the first `length` bytes is there; they read as before.
int larder_allocate(int descriptor, int64_t length);

/// lseek(2) with SEEK_DATA: the first byte that is not in a hole, at or after offset.
int64_t larder_seek_data(int descriptor, int64_t offset);

/// lseek(2) with SEEK_HOLE: the first hole (or the end of the file) at or after offset.
int64_t larder_seek_hole(int descriptor, int64_t offset);

/// preadv2(2) with RWF_NOWAIT: only what is in the page cache; EAGAIN where reading would wait for the disk.
ssize_t larder_read_nowait(int descriptor, void *_Nonnull bytes, size_t count, int64_t offset);

/// cachestat(2), since Linux 6.5: how many pages of the run are in the page cache; -1 where the kernel does not tell.
int64_t larder_cached_pages(int descriptor, int64_t offset, int64_t length);

/// How many pages a run touches.
int64_t larder_pages(int64_t offset, int64_t length);

/// posix_fadvise(2) with POSIX_FADV_DONTNEED: the run's pages leave the page cache, those apart that are not on the disk yet
/// or that somebody refers to.
int larder_drop_pages(int descriptor, int64_t offset, int64_t length);

/// The largest piece that the page cache keeps whole: what one page of page table entries maps.
int64_t larder_largest_folio(void);

/// flock(2) with LOCK_EX | LOCK_NB: EWOULDBLOCK where another open file description holds the lock.
int larder_lock_exclusive(int descriptor);

/// statvfs(3): the bytes an unprivileged process may still write to the file system of path, or -1.
int64_t larder_free_bytes(const char *_Nonnull path);

/// sched_getaffinity(2): how many processor cores this process is bound to, or -1.
int larder_usable_cores(void);

/// mallopt(3): threads share so many heaps from now on (M_ARENA_MAX), and what is larger than 1 MiB goes back to the system as
/// soon as it is freed (M_MMAP_THRESHOLD). No effect where the C library is not glibc.
void larder_limit_heaps(int count);

/// The CRC-32C (RFC 3720 §12.1) of bytes that come after those whose sum is `sum` (0: after none); by the processor's
/// instruction where it has one (SSE4.2, ARMv8 CRC), else by tables.
uint32_t larder_crc32c(uint32_t sum, const void *_Nullable bytes, size_t count);

/// As `larder_crc32c`, by tables in any case.
uint32_t larder_crc32c_by_table(uint32_t sum, const void *_Nullable bytes, size_t count);

/// Whether the processor has the instruction.
bool larder_crc32c_has_instruction(void);
