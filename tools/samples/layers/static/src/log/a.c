/* SPDX-License-Identifier: Apache-2.0 */
int log_count(void);

int log_count(void)
{
    static int count;
    return ++count;
}
