/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

void keeper_stop(pthread_t thread);

void keeper_stop(pthread_t thread)
{
    pthread_join(thread, NULL);
}
