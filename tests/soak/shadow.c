/* SPDX-License-Identifier: Apache-2.0 */
/* What the layer that writes a shadow and the program that reads it have in common. */
#include "shadow.h"

#include <fcntl.h>
#include <stdio.h>

bool shadow_key(int dir, const char *path, char key[SHADOW_KEY_BYTES], mode_t *mode)
{
    struct statx st;

    if (statx(dir, path, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO | STATX_BTIME,
              &st))
        return false;
    snprintf(key, SHADOW_KEY_BYTES, "%llu-%lld.%09u", (unsigned long long)st.stx_ino,
             (long long)st.stx_btime.tv_sec, st.stx_btime.tv_nsec);
    *mode = st.stx_mode;
    return true;
}
