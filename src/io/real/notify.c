/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A word to the supervisor: systemd, or whoever else speaks its protocol of datagrams to a Unix
 * socket (sd_notify(3)). The socket is made for each word, since there are few. And whether the
 * supervisor reads what we say on standard error (systemd.exec(5), JOURNAL_STREAM): the variable
 * alone does not tell, because standard error may have been redirected since.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/real/real_int.h"

/* The size of the address; 0 when the path does not fit. */
static socklen_t address_of(const char *path, struct sockaddr_un *to)
{
    size_t n = strlen(path);

    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (n == 0 || n >= sizeof(to->sun_path))
        return 0;
    memcpy(to->sun_path, path, n);
    if (*path == '@')
        to->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
}

enum err io_notify(struct io *io, const char *path, struct str text)
{
    struct sockaddr_un to;
    socklen_t size = address_of(path, &to);
    enum err err = ERR_NONE;
    int fd;

    (void)io;
    if (size == 0)
        return ERR_NOT_FOUND;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_of_errno(errno);
    if (sendto(fd, text.p, (size_t)text.n, MSG_NOSIGNAL, (struct sockaddr *)&to, size) < 0)
        err = err_of_errno(errno);
    close(fd);
    return err;
}

bool io_stderr_is(struct io *io, const char *device_inode)
{
    struct stat st;
    char text[64];

    (void)io;
    if (fstat(STDERR_FILENO, &st) != 0)
        return false;
    snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    return strcmp(text, device_inode) == 0;
}
