/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's error numbers as errors of ours. Only those that somebody reacts to have a row; the
 * others are "input/output error", and the trace of the call that failed names the number.
 */
#include <errno.h>

#include "io/real/real_int.h"

static const struct {
    int number;
    enum err err;
} rows[] = {
    {EAGAIN, ERR_AGAIN},
    /* Names. */
    {ENOENT, ERR_NOT_FOUND},
    {ENOTDIR, ERR_NOT_FOUND},
    {EEXIST, ERR_EXISTS},
    {ENOTEMPTY, ERR_NOT_EMPTY},
    {EACCES, ERR_ACCESS},
    {EPERM, ERR_ACCESS},
    {EROFS, ERR_ACCESS},
    /* Resources. */
    {ENOSPC, ERR_NO_SPACE},
    {EDQUOT, ERR_NO_SPACE},
    {EMFILE, ERR_LIMIT},
    {ENFILE, ERR_LIMIT},
    {ENOBUFS, ERR_LIMIT},
    {ENOMEM, ERR_LIMIT},
    {EOPNOTSUPP, ERR_UNSUPPORTED},
    {ENOSYS, ERR_UNSUPPORTED},
    /* Peers and addresses. */
    {EADDRINUSE, ERR_ADDR_IN_USE},
    {EADDRNOTAVAIL, ERR_NOT_FOUND},
    {EAFNOSUPPORT, ERR_NOT_FOUND},
    {ECONNRESET, ERR_RESET},
    {EPIPE, ERR_RESET},
    {ECONNREFUSED, ERR_REFUSED},
    {EHOSTUNREACH, ERR_REFUSED},
    {ENETUNREACH, ERR_REFUSED},
    {ETIMEDOUT, ERR_TIMEOUT},
};

enum err err_of_errno(int number)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].number == number)
            return rows[i].err;
    return ERR_IO;
}
