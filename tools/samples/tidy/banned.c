/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample file, which breaks one rule on purpose: the one that its name says.
 * It is never compiled.
 * The line-reader must report it.
 */
void copy(char *to, const char *from)
{
    strcpy(to, from);
}
