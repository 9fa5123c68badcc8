/* SPDX-License-Identifier: Apache-2.0 */
const char *log_name(unsigned kind);

static const char *const names[] = {"append", "roll"};

const char *log_name(unsigned kind)
{
    return names[kind % 2];
}
