/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs: a queue and up to IO_WORKERS_MAX threads, which start when a job finds no idle one and
 * then stay, asleep. A job's completion is a message to the loop that submitted it.
 */
#include "base/assert.h"
#include "io/real/real_int.h"

static void job_done(struct io_msg *msg)
{
    struct io_job *job = CONTAINER_OF(msg, struct io_job, _msg);

    job->done(job);
}

/* Waits for a job; NULL at the end. */
static struct io_job *take_job(struct io *io)
{
    struct list *node = NULL;

    pthread_mutex_lock(&io->lock);
    io->workers_idle++;
    while (!io->workers_end && !(node = list_pop_front(&io->jobs)))
        pthread_cond_wait(&io->job_came, &io->lock);
    io->workers_idle--;
    if (node)
        io->jobs_waiting--;
    pthread_mutex_unlock(&io->lock);
    return node ? LIST_ENTRY(node, struct io_job, _node) : NULL;
}

static void *worker_main(void *arg)
{
    struct io *io = arg;
    struct io_job *job;
    struct trace trace;

    trace_init_from(&trace, io);
    trace_set_current(&trace);
    while ((job = take_job(io))) {
        job->run(job);
        io_post(job->_loop, &job->_msg);
    }
    trace_fini(&trace);
    return NULL;
}

void io_job_submit(struct io_loop *loop, struct io_job *job)
{
    struct io *io = loop->io;

    assert(loop == io_loop_current());
    assert(job->run && job->done);
    job->_loop = loop;
    job->_msg.fn = job_done;
    pthread_mutex_lock(&io->lock);
    list_push_back(&io->jobs, &job->_node);
    io->jobs_waiting++;
    if (io->worker_count < IO_WORKERS_MAX && io->jobs_waiting > io->workers_idle)
        io->workers[io->worker_count++] = thread_start("worker", worker_main, io);
    pthread_cond_signal(&io->job_came);
    pthread_mutex_unlock(&io->lock);
}

void jobs_end(struct io *io)
{
    pthread_mutex_lock(&io->lock);
    io->workers_end = true;
    pthread_cond_broadcast(&io->job_came);
    pthread_mutex_unlock(&io->lock);
    while (io->worker_count > 0)
        pthread_join(io->workers[--io->worker_count], NULL);
}
