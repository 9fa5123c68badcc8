/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

void log_hello(int n);

void log_hello(int n)
{
    printf("hello %d\n", n);
}
