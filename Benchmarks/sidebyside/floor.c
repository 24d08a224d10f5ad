// A minimal server of byte ranges: epoll, one read, one send, sendfile, without pacing. It has one file, and no checks,
// logs, counters or caches; so its processor time is the kernel's part of a response, the lower bound for send buffers of
// the kernel's own size.
//
//     floor FILE
//
// Prints the port it listens on, and serves until it is killed.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 65536, WORDS = 16384 };

// The unsent range of a connection, by its descriptor.
static struct { off_t next, end; } left[MOST];
static int file, poller;
static off_t length;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void leave(int peer) {
    left[peer].next = left[peer].end = 0;
    close(peer);
}

// Sends until the socket is full; the rest when it is writable again.
static void send_body(int peer) {
    while (left[peer].next < left[peer].end) {
        ssize_t sent = sendfile(peer, file, &left[peer].next, left[peer].end - left[peer].next);
        if (sent < 0 && errno == EAGAIN) return;
        if (sent <= 0) return leave(peer);
    }
}

static void answer(int peer, char *words) {
    long long first, last;
    char *range = strcasestr(words, "\r\nRange: bytes=");
    if (!range || sscanf(range + 15, "%lld-%lld", &first, &last) != 2) return leave(peer);
    if (first < 0 || first > last || last >= length) return leave(peer);
    char head[256];
    int size = snprintf(head, sizeof head,
        "HTTP/1.1 206 Partial Content\r\nContent-Length: %lld\r\nContent-Range: bytes %lld-%lld/%lld\r\n\r\n",
        last - first + 1, first, last, (long long)length);
    if (send(peer, head, size, MSG_MORE) != size) return leave(peer);
    left[peer].next = first;
    left[peer].end = last + 1;
    send_body(peer);
}

static void hear(int peer) {
    static char words[WORDS];
    ssize_t size = read(peer, words, sizeof words - 1);
    if (size < 0 && errno == EAGAIN) return;
    if (size < 4 || left[peer].next < left[peer].end) return leave(peer);
    words[size] = 0;
    if (strcmp(words + size - 4, "\r\n\r\n")) return leave(peer);
    answer(peer, words);
}

static void meet(int listener) {
    int one = 1, peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (peer < 0) return;
    if (peer >= MOST) return leave(peer);
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.fd = peer};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, peer, &event)) fail("epoll_ctl");
}

int main(int count, char **arguments) {
    struct stat status;
    if (count != 2 || (file = open(arguments[1], O_RDONLY)) < 0 || fstat(file, &status)) fail("floor FILE");
    length = status.st_size;
    signal(SIGPIPE, SIG_IGN);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (setsockopt(listener, IPPROTO_TCP, TCP_CONGESTION, "reno", 4)) fail("TCP_CONGESTION");
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 4096)) fail("listen");
    if (getsockname(listener, (struct sockaddr *)&address, &size)) fail("getsockname");
    struct epoll_event events[512] = {{.events = EPOLLIN, .data.fd = listener}};
    if ((poller = epoll_create1(0)) < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, listener, events)) fail("epoll");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        int ready = epoll_wait(poller, events, 512, -1);
        for (int index = 0; index < ready; index++) {
            int peer = events[index].data.fd;
            if (peer == listener) meet(listener);
            else if (left[peer].next < left[peer].end) send_body(peer);
            else if (events[index].events & EPOLLIN) hear(peer);
        }
    }
}
