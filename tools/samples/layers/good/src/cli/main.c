/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

static int runs;

int main(void)
{
    printf("%d\n", ++runs);
    return 0;
}
