/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures as Prometheus reads them (text format 0.0.4): for each metric a line of help, a line with
 * its type, and its samples in one block. This file is the list of all metrics there are.
 *
 * Names are those that Prometheus' JMX exporter makes of Kafka's MBeans in lower case, and mean
 * what they mean there. Kafka's times are quantiles of a sliding window, which cannot be added up
 * over brokers; here they are histograms of the same names, in milliseconds. Only what has been
 * asked for has samples: an API that nobody has called, an error that nobody has got, have none.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "http/http_int.h"

#define LABELS_BYTES_MAX 1024

/* ---- the format --------------------------------------------------------------------------- */

static printf_like(2, 3) void put(struct buf *to, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    va_start(args, fmt);
    vsnprintf((char *)buf_reserve(to, (size_t)n + 1), (size_t)n + 1, fmt, args);
    va_end(args);
    to->n += (size_t)n;
}

static void family(struct buf *to, const char *name, const char *type, const char *help)
{
    put(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void sample(struct buf *to, const char *name, const char *labels, int64_t value)
{
    if (*labels)
        put(to, "%s{%s} %" PRId64 "\n", name, labels, value);
    else
        put(to, "%s %" PRId64 "\n", name, value);
}

/* A family of one sample. */
static void single(struct buf *to, const char *name, const char *type, const char *help,
                   int64_t value)
{
    family(to, name, type, help);
    sample(to, name, "", value);
}

/* key="value", with what the format wants escaped; a value that does not fit is cut. */
static const char *label(char to[static LABELS_BYTES_MAX], const char *key, const char *value)
{
    size_t n = (size_t)snprintf(to, LABELS_BYTES_MAX, "%s=\"", key);

    for (; *value && n < LABELS_BYTES_MAX - 4; value++) {
        if (*value == '\n' || *value == '"' || *value == '\\')
            to[n++] = '\\';
        to[n++] = *value;
        if (*value == '\n')
            to[n - 1] = 'n';
    }
    to[n++] = '"';
    to[n] = '\0';
    return to;
}

static void print_histogram(struct buf *to, const char *name, const char *labels,
                            const struct latency_figures *l)
{
    int64_t sum = 0;

    for (int i = 0; i < LATENCY_CLASSES - 1; i++) {
        sum += l->classes[i];
        put(to, "%s_bucket{%s,le=\"%g\"} %" PRId64 "\n", name, labels,
            (double)latency_bound_ns(i) / 1e6, sum);
    }
    put(to, "%s_bucket{%s,le=\"+Inf\"} %" PRId64 "\n", name, labels, l->count);
    put(to, "%s_sum{%s} %.6f\n", name, labels, (double)l->sum_ns / 1e6);
    put(to, "%s_count{%s} %" PRId64 "\n", name, labels, l->count);
}

/* ---- topics ------------------------------------------------------------------------------- */

struct traffic_metric {
    const char *name;
    const char *help;
    size_t at; /* in struct figures_traffic */
};

static int64_t traffic_value(const struct figures_traffic *t, const struct traffic_metric *m)
{
    int64_t value;

    memcpy(&value, (const char *)t + m->at, sizeof(value));
    return value;
}

static void print_throttled(struct buf *to, const struct figures *f)
{
    static const char name[] = "strandline_throttled_replication_bytes_total";
    char labels[LABELS_BYTES_MAX];

    family(to, name, "counter", "Bytes between replicas, of partitions that are throttled.");
    sample(to, name, label(labels, "side", "leader"), f->throttled_out);
    sample(to, name, label(labels, "side", "follower"), f->throttled_in);
}

/* As in Kafka, one sample for all topics and one for each topic that there is. */
static void print_traffic(struct buf *to, const struct figures *f)
{
    static const struct traffic_metric metrics[] = {
        {"kafka_server_brokertopicmetrics_messagesin_total", "Records appended.",
         offsetof(struct figures_traffic, messages_in)},
        {"kafka_server_brokertopicmetrics_bytesin_total", "Bytes of record batches appended.",
         offsetof(struct figures_traffic, bytes_in)},
        {"kafka_server_brokertopicmetrics_bytesout_total",
         "Bytes of record batches in answers to fetches.",
         offsetof(struct figures_traffic, bytes_out)},
    };
    char labels[LABELS_BYTES_MAX];

    for (size_t i = 0; i < ARRAY_LEN(metrics); i++) {
        const struct traffic_metric *m = &metrics[i];

        family(to, m->name, "counter", m->help);
        sample(to, m->name, "", traffic_value(&f->traffic, m));
        for (int32_t t = 0; t < f->topic_count; t++)
            sample(to, m->name, label(labels, "topic", f->topics[t].name),
                   traffic_value(&f->topics[t].traffic, m));
    }
    single(to, "kafka_server_brokertopicmetrics_totalproducerequests_total", "counter",
           "Partitions in produce requests.", f->produce_parts);
    single(to, "kafka_server_brokertopicmetrics_failedproducerequests_total", "counter",
           "Partitions in produce requests that got an error.", f->produce_parts_failed);
    single(to, "kafka_server_brokertopicmetrics_totalfetchrequests_total", "counter",
           "Partitions in answers to fetches.", f->fetch_parts);
    single(to, "kafka_server_brokertopicmetrics_failedfetchrequests_total", "counter",
           "Partitions in answers to fetches that got an error.", f->fetch_parts_failed);
    print_throttled(to, f);
}

struct partition_metric {
    const char *name;
    const char *help;
    size_t at; /* in struct figures_partition */
};

static void print_partitions(struct buf *to, const struct figures *f)
{
    static const struct partition_metric metrics[] = {
        {"kafka_log_log_logstartoffset", "First offset of the log.",
         offsetof(struct figures_partition, log_start)},
        {"kafka_log_log_logendoffset", "Offset behind the last record of the log.",
         offsetof(struct figures_partition, end)},
        {"kafka_log_log_size", "Bytes of the log's segments.",
         offsetof(struct figures_partition, bytes)},
        {"kafka_log_log_numlogsegments", "Segments of the log.",
         offsetof(struct figures_partition, segments)},
    };
    char labels[LABELS_BYTES_MAX];

    for (size_t i = 0; i < ARRAY_LEN(metrics) && f->partitions_given > 0; i++) {
        family(to, metrics[i].name, "gauge", metrics[i].help);
        for (int32_t p = 0; p < f->partitions_given; p++) {
            const struct figures_partition *from = &f->partitions[p];
            int64_t value;

            memcpy(&value, (const char *)from + metrics[i].at, sizeof(value));
            label(labels, "topic", from->topic);
            put(to, "%s{%s,partition=\"%d\"} %" PRId64 "\n", metrics[i].name, labels, from->index,
                value);
        }
    }
    single(to, "strandline_partition_metrics_left_out", "gauge",
           "Partitions that have no samples of their own, because there are more than "
           "http.partition.metrics.max or their log directory has failed.",
           f->partition_count - f->partitions_given);
}

/* ---- requests and connections -------------------------------------------------------------- */

/* "list_offsets" as Kafka spells it: request="ListOffsets". */
static const char *api_label(char to[static LABELS_BYTES_MAX], const char *name)
{
    size_t n = (size_t)snprintf(to, LABELS_BYTES_MAX, "request=\"");
    bool is_first = true;

    for (; *name; name++) {
        if (*name != '_')
            to[n++] = is_first && *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name;
        is_first = *name == '_';
    }
    to[n++] = '"';
    to[n] = '\0';
    return to;
}

static void print_errors(struct buf *to, const char *name, const struct figures_api *api)
{
    char labels[LABELS_BYTES_MAX];

    api_label(labels, api->name);
    for (int i = 0; i < FIGURES_ERRORS; i++)
        if (api->errors[i] > 0)
            put(to, "%s{%s,error=\"%s\"} %" PRId64 "\n", name, labels,
                err_name(err_from_wire((int16_t)(i - 1))), api->errors[i]);
}

static void print_times(struct buf *to, const struct figures *f, const char *name, const char *help,
                        size_t at)
{
    char labels[LABELS_BYTES_MAX];

    family(to, name, "histogram", help);
    for (int i = 0; i < f->api_count; i++) {
        struct latency_figures l;

        memcpy(&l, (const char *)&f->apis[i] + at, sizeof(l));
        if (l.count > 0)
            print_histogram(to, name, api_label(labels, f->apis[i].name), &l);
    }
}

static void print_requests(struct buf *to, const struct figures *f)
{
    static const char requests[] = "kafka_network_requestmetrics_requests_total";
    static const char errors[] = "kafka_network_requestmetrics_errors_total";
    char labels[LABELS_BYTES_MAX];

    family(to, requests, "counter", "Requests that have been answered.");
    for (int i = 0; i < f->api_count; i++)
        if (f->apis[i].total.count > 0)
            sample(to, requests, api_label(labels, f->apis[i].name), f->apis[i].total.count);
    family(to, errors, "counter", "Errors in answers, each partition's by itself.");
    for (int i = 0; i < f->api_count; i++)
        print_errors(to, errors, &f->apis[i]);
    print_times(to, f, "kafka_network_requestmetrics_totaltimems",
                "Milliseconds from the last byte of a request to that of its answer.",
                offsetof(struct figures_api, total));
    print_times(to, f, "kafka_network_requestmetrics_localtimems",
                "Milliseconds until the answer is ready, without a fetch's wait for records.",
                offsetof(struct figures_api, local));
}

static void print_connections(struct buf *to, const struct figures *f)
{
    static const char now[] = "kafka_server_socket_server_metrics_connection_count";
    static const char opened[] = "kafka_server_socket_server_metrics_connection_creation_total";
    static const char closed[] = "kafka_server_socket_server_metrics_connection_close_total";
    char labels[LABELS_BYTES_MAX];

    family(to, now, "gauge", "Connections of clients.");
    for (int i = 0; i < f->listener_count; i++)
        sample(to, now, label(labels, "listener", f->listeners[i].name),
               f->listeners[i].opened - f->listeners[i].closed);
    family(to, opened, "counter", "Connections that were accepted.");
    for (int i = 0; i < f->listener_count; i++)
        sample(to, opened, label(labels, "listener", f->listeners[i].name), f->listeners[i].opened);
    family(to, closed, "counter", "Connections that have ended.");
    for (int i = 0; i < f->listener_count; i++)
        sample(to, closed, label(labels, "listener", f->listeners[i].name), f->listeners[i].closed);
    single(to, "strandline_buffer_bytes", "gauge",
           "Memory of requests and responses, under queued.max.request.bytes.", f->request_bytes);
}

/* ---- the broker ---------------------------------------------------------------------------- */

/* Kafka's numbers of a broker's state. */
static int64_t broker_state(enum figures_phase phase)
{
    switch (phase) {
    case FIGURES_STARTING: return 2;
    case FIGURES_SERVING: return 3;
    case FIGURES_STOPPING: return 7;
    }
    UNREACHABLE();
}

static void print_broker(struct buf *to, const struct page_source *source)
{
    const struct figures *f = source->figures;
    char version[LABELS_BYTES_MAX];
    char cluster[LABELS_BYTES_MAX];

    family(to, "strandline_build_info", "gauge", "Always 1; what runs, and where it belongs.");
    put(to, "strandline_build_info{%s,%s,node_id=\"%d\"} 1\n",
        label(version, "version", source->version), label(cluster, "cluster_id", f->cluster_id),
        f->node_id);
    single(to, "kafka_server_kafkaserver_brokerstate", "gauge",
           "2: recovery, 3: running, 7: shutting down.", broker_state(f->phase));
    single(to, "kafka_controller_kafkacontroller_activecontrollercount", "gauge",
           "1 on the broker that is the controller.", f->is_controller);
    single(to, "kafka_controller_kafkacontroller_globaltopiccount", "gauge", "Topics.",
           f->cluster_topics);
    single(to, "kafka_controller_kafkacontroller_globalpartitioncount", "gauge", "Partitions.",
           f->cluster_partitions);
    single(to, "kafka_controller_kafkacontroller_offlinepartitionscount", "gauge",
           "Partitions without a leader.", f->cluster_leaderless);
    single(to, "kafka_server_replicamanager_partitioncount", "gauge", "Partitions on this broker.",
           f->partition_count);
    single(to, "kafka_server_replicamanager_leadercount", "gauge",
           "Partitions that this broker leads.", f->partitions_led);
    single(to, "kafka_server_replicamanager_underreplicatedpartitions", "gauge",
           "Partitions led here with a replica that is not in sync.", f->partitions_lagging);
    single(to, "kafka_server_replicamanager_underminisrpartitioncount", "gauge",
           "Partitions led here with fewer replicas in sync than min.insync.replicas.",
           f->partitions_below_min);
    single(to, "kafka_server_replicamanager_offlinereplicacount", "gauge",
           "Replicas in log directories that have failed.", f->partitions_offline);
    single(to, "kafka_coordinator_group_groupmetadatamanager_numgroups", "gauge",
           "Consumer groups coordinated here.", f->group_count);
    single(to, "kafka_coordinator_group_groupmetadatamanager_numoffsets", "gauge",
           "Offsets that these groups have committed.", f->offset_count);
}

/* ---- log directories ------------------------------------------------------------------------ */

struct dir_metric {
    const char *name;
    const char *type;
    const char *help;
    int64_t (*value)(const struct figures_dir *d);
};

static int64_t is_offline(const struct figures_dir *d)
{
    return d->has_failed;
}

static int64_t is_full(const struct figures_dir *d)
{
    return !d->has_space;
}

static int64_t commits(const struct figures_dir *d)
{
    return d->journal.commits;
}

static int64_t operations(const struct figures_dir *d)
{
    return d->journal.ops;
}

static int64_t written_bytes(const struct figures_dir *d)
{
    return d->journal.bytes;
}

static void print_dirs(struct buf *to, const struct figures *f)
{
    static const struct dir_metric metrics[] = {
        {"kafka_log_logmanager_logdirectoryoffline", "gauge", "1: the directory has failed.",
         is_offline},
        {"strandline_log_directory_full", "gauge", "1: too little space is left to append.",
         is_full},
        {"strandline_journal_commits_total", "counter", "Group commits.", commits},
        {"strandline_journal_appends_total", "counter", "Batches in them.", operations},
        {"strandline_journal_written_bytes_total", "counter",
         "Bytes written to segments and indexes.", written_bytes},
    };
    static const char flush[] = "kafka_log_logflushstats_logflushrateandtimems";
    char labels[LABELS_BYTES_MAX];
    int64_t failed = 0;

    for (size_t i = 0; i < ARRAY_LEN(metrics); i++) {
        family(to, metrics[i].name, metrics[i].type, metrics[i].help);
        for (int d = 0; d < f->dir_count; d++)
            sample(to, metrics[i].name, label(labels, "logdirectory", f->dirs[d].path),
                   metrics[i].value(&f->dirs[d]));
    }
    family(to, flush, "histogram", "Milliseconds of each sync of a segment.");
    for (int d = 0; d < f->dir_count; d++) {
        failed += f->dirs[d].has_failed;
        print_histogram(to, flush, label(labels, "logdirectory", f->dirs[d].path),
                        &f->dirs[d].sync);
    }
    single(to, "kafka_log_logmanager_offlinelogdirectorycount", "gauge",
           "Log directories that have failed.", failed);
}

static void print_cleaner(struct buf *to, const struct page_source *source)
{
    const struct figures_cleaner *c = &source->figures->cleaner;

    if (c->last_ms > 0)
        single(to, "kafka_log_logcleanermanager_time_since_last_run_ms", "gauge",
               "Milliseconds since the last compaction of a log.",
               source->now_ms > c->last_ms ? source->now_ms - c->last_ms : 0);
    single(to, "strandline_log_cleaner_runs_total", "counter", "Compactions of a log.", c->runs);
    single(to, "strandline_log_cleaner_failures_total", "counter", "Those that failed.", c->failed);
}

/* ---- the process ---------------------------------------------------------------------------- */

static void print_process(struct buf *to, const struct io_usage *u)
{
    family(to, "process_cpu_seconds_total", "counter", "CPU time.");
    put(to, "process_cpu_seconds_total %.3f\n", (double)u->cpu_ns / 1e9);
    family(to, "process_start_time_seconds", "gauge", "When it began, in seconds since 1970.");
    put(to, "process_start_time_seconds %.3f\n", (double)u->start_ms / 1e3);
    single(to, "process_resident_memory_bytes", "gauge", "Memory in use.", u->resident_bytes);
    single(to, "process_virtual_memory_bytes", "gauge", "Address space.", u->virtual_bytes);
    single(to, "process_threads", "gauge", "Threads.", u->threads);
    single(to, "process_open_fds", "gauge", "Open files and connections.", u->open_files);
    single(to, "process_max_fds", "gauge", "How many may be open.", u->open_files_max);
}

void metrics_print(const struct page_source *source, struct buf *to)
{
    print_broker(to, source);
    print_traffic(to, source->figures);
    print_requests(to, source->figures);
    print_connections(to, source->figures);
    print_dirs(to, source->figures);
    print_cleaner(to, source);
    print_partitions(to, source->figures);
    print_process(to, &source->usage);
}
