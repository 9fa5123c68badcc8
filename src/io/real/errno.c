/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's error numbers as errors of ours. Only those that somebody reacts to have a row; the
 * others are "input/output error", and the trace of the call that failed names the number.
 */
#include <errno.h>

#include "io/real/real_int.h"

enum err err_of_errno(int number)
{
    switch (number) {
    case EAGAIN: return ERR_AGAIN;
    case ENOENT: return ERR_NOT_FOUND;
    case ENOTDIR: return ERR_NOT_FOUND;
    case EEXIST: return ERR_EXISTS;
    case ENOTEMPTY: return ERR_NOT_EMPTY;
    case EACCES: return ERR_ACCESS;
    case EPERM: return ERR_ACCESS;
    case EROFS: return ERR_ACCESS;
    case ENOSPC: return ERR_NO_SPACE;
    case EDQUOT: return ERR_NO_SPACE;
    case EMFILE: return ERR_LIMIT;
    case ENFILE: return ERR_LIMIT;
    case ENOBUFS: return ERR_LIMIT;
    case ENOMEM: return ERR_LIMIT;
    case EADDRINUSE: return ERR_ADDR_IN_USE;
    case EADDRNOTAVAIL: return ERR_NOT_FOUND;
    case EAFNOSUPPORT: return ERR_NOT_FOUND;
    case ECONNRESET: return ERR_RESET;
    case EPIPE: return ERR_RESET;
    case ECONNREFUSED: return ERR_REFUSED;
    case EHOSTUNREACH: return ERR_REFUSED;
    case ENETUNREACH: return ERR_REFUSED;
    case ETIMEDOUT: return ERR_TIMEOUT;
    case EOPNOTSUPP: return ERR_UNSUPPORTED;
    case ENOSYS: return ERR_UNSUPPORTED;
    default: return ERR_IO;
    }
}
