/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample file, which breaks one rule on purpose: the one that its name says.
 * It is never compiled.
 * The line-reader must report it.
 */
void deep(int n)
{
    if (n > 1) {
        while (n > 2) {
            if (n > 3) {
                if (n > 4)
                    n--;
            }
        }
    }
}
