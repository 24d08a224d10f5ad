#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <malloc.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// The number of cachestat(2) is the same on all architectures. The headers of the C library may be older.
#define LARDER_SYS_CACHESTAT 451

int larder_open(const char *path, enum larder_open_mode mode) {
    int flags = O_CLOEXEC | O_NOFOLLOW;
    switch (mode) {
    case LARDER_OPEN_READ_ONLY: flags |= O_RDONLY; break;
    case LARDER_OPEN_READ_WRITE: flags |= O_RDWR; break;
    case LARDER_OPEN_CREATE: flags |= O_RDWR | O_CREAT | O_EXCL; break;
    case LARDER_OPEN_OR_CREATE: flags |= O_RDWR | O_CREAT; break;
    }
    return open(path, flags, 0600);
}

// O_NONBLOCK: opening a pipe must not wait for its writer.
int larder_open_below(const char *directory, const char *path) {
    int root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) return -1;
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    int descriptor = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    // close(2) may change errno.
    int number = errno;
    close(root);
    errno = number;
    return descriptor;
}

int larder_punch_hole(int descriptor, int64_t offset, int64_t length) {
    return fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length);
}

int larder_allocate(int descriptor, int64_t length) { return fallocate(descriptor, 0, 0, length); }

int64_t larder_seek_data(int descriptor, int64_t offset) { return lseek(descriptor, offset, SEEK_DATA); }

int64_t larder_seek_hole(int descriptor, int64_t offset) { return lseek(descriptor, offset, SEEK_HOLE); }

ssize_t larder_read_nowait(int descriptor, void *bytes, size_t count, int64_t offset) {
    struct iovec vector = {.iov_base = bytes, .iov_len = count};
    return preadv2(descriptor, &vector, 1, offset, RWF_NOWAIT);
}

int64_t larder_pages(int64_t offset, int64_t length) {
    int64_t page = sysconf(_SC_PAGESIZE);
    return length <= 0 ? 0 : (offset + length - 1) / page - offset / page + 1;
}

int64_t larder_cached_pages(int descriptor, int64_t offset, int64_t length) {
    if (length <= 0) return 0;
    struct {
        uint64_t offset, length;
    } range = {(uint64_t)offset, (uint64_t)length};
    struct {
        uint64_t cached, dirty, writeback, evicted, recently_evicted;
    } pages;
    if (syscall(LARDER_SYS_CACHESTAT, descriptor, &range, &pages, 0) != 0) return -1;
    return (int64_t)pages.cached;
}

int larder_start_write(int descriptor) { return sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE); }

int larder_drop_pages(int descriptor, int64_t offset, int64_t length) {
    int error = posix_fadvise(descriptor, offset, length, POSIX_FADV_DONTNEED);
    if (error == 0) return 0;
    errno = error;
    return -1;
}

int64_t larder_largest_folio(void) {
    int64_t page = sysconf(_SC_PAGESIZE);
    return page * (page / 8);
}

int larder_lock(int descriptor, int is_shared) { return flock(descriptor, (is_shared ? LOCK_SH : LOCK_EX) | LOCK_NB); }

int64_t larder_free_bytes(const char *path) {
    struct statvfs status;
    if (statvfs(path, &status) != 0) return -1;
    return (int64_t)status.f_bavail * (int64_t)status.f_frsize;
}

int64_t larder_disk_bytes(const char *path) {
    struct statvfs status;
    if (statvfs(path, &status) != 0) return -1;
    return (int64_t)status.f_blocks * (int64_t)status.f_frsize;
}

int64_t larder_file_system(const char *path) {
    struct statfs status;
    if (statfs(path, &status) != 0) return -1;
    return (int64_t)status.f_type;
}

int larder_clock_is_synchronized(void) {
    struct timex clock = {0};
    if (adjtimex(&clock) < 0) return -1;
    return (clock.status & STA_UNSYNC) == 0;
}

int larder_usable_cores(void) {
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof cores, &cores) < 0 ? -1 : CPU_COUNT(&cores);
}

void larder_limit_heaps(int count) {
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, count);
    // A fixed threshold disables glibc's dynamic one. Otherwise the first large block that is freed raises the
    // threshold to its size, up to 32 MiB: the next large blocks would be allocated in heaps, which do not shrink.
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 20);
#else
    (void)count;
#endif
}

int64_t larder_allocated_bytes(void) {
#ifdef __GLIBC__
    struct mallinfo2 use = mallinfo2();
    return (int64_t)(use.uordblks + use.hblkhd);
#else
    return -1;
#endif
}

void larder_trim_heaps(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

int larder_forbid_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }
