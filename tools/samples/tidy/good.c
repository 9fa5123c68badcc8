/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample file, which breaks one rule on purpose: the one that its name says.
 * It is never compiled.
 * The line-reader must report it.
 */

static int twice(int n)
{
    /* No strcpy(a, b) here, and "sprintf(" below is text. */
    const char *text = "sprintf(";
    for (int i = 0; i < n; i++)
        if (text[i] == ':')
            return i;
    return 2 * n;
}
