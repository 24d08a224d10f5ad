#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

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

int larder_open_below(const char *directory, const char *path) {
    int root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) return -1;
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    int descriptor = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    int number = errno;
    close(root);
    errno = number;
    return descriptor;
}

int larder_punch_hole(int descriptor, int64_t offset, int64_t length) {
    return fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length);
}

int64_t larder_seek_data(int descriptor, int64_t offset) { return lseek(descriptor, offset, SEEK_DATA); }

int64_t larder_seek_hole(int descriptor, int64_t offset) { return lseek(descriptor, offset, SEEK_HOLE); }

ssize_t larder_read_nowait(int descriptor, void *bytes, size_t count, int64_t offset) {
    struct iovec vector = {.iov_base = bytes, .iov_len = count};
    return preadv2(descriptor, &vector, 1, offset, RWF_NOWAIT);
}

int larder_lock_exclusive(int descriptor) { return flock(descriptor, LOCK_EX | LOCK_NB); }

int64_t larder_free_bytes(const char *path) {
    struct statvfs status;
    if (statvfs(path, &status) != 0) return -1;
    return (int64_t)status.f_bavail * (int64_t)status.f_frsize;
}
