/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures in, lines out: the values stand behind the right names and labels, and the text keeps
 * the rules of Prometheus' format (one block a family, with its help and type in front).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http/http_int.h"

#define MS INT64_C(1000000)

/* What the tests print: filled by fill(), changed at will. */
struct world {
    struct figures_api apis[3];
    struct figures_listener listeners[2];
    struct figures_dir dirs[2];
    struct figures_topic topics[2];
    struct figures_partition partitions[2];
    struct figures figures;
    struct page_source source;
    struct buf text;
};

static void fill(struct world *w)
{
    *w = (struct world){
        .apis = {{.name = "produce"}, {.name = "list_offsets"}, {.name = "never_called"}},
        .listeners = {{.name = "IN", .opened = 7, .closed = 5}, {.name = "a\"b\\c\nd"}},
        .dirs = {{.path = "/one", .has_space = true}, {.path = "/two", .has_failed = true}},
        .topics = {{.name = "t", .traffic = {1, 2, 3}}, {.name = "u.v", .traffic = {4, 5, 6}}},
        .partitions = {{.topic = "t", .index = 12, .log_start = 3, .end = 9}, {.topic = "u.v"}},
    };
    w->figures = (struct figures){
        .phase = FIGURES_SERVING,
        .node_id = 4,
        .cluster_id = "Q",
        .apis = w->apis,
        .api_count = 3,
        .listeners = w->listeners,
        .listener_count = 2,
        .dirs = w->dirs,
        .dir_count = 2,
        .traffic = {10, 11, 12},
        .throttled_out = 13,
        .throttled_in = 14,
        .topic_count = 2,
        .topics = w->topics,
        .partitions = w->partitions,
        .partitions_given = 2,
        .partition_count = 3,
        .partitions_offline = 1,
        .is_controller = true,
        .cluster_topics = 5,
        .cluster_partitions = 50,
        .cluster_leaderless = 7,
        .partitions_led = 2,
        .partitions_lagging = 8,
        .partitions_below_min = 9,
        .group_count = 31,
        .offset_count = 32,
    };
    w->source = (struct page_source){.figures = &w->figures, .version = "v", .now_ms = 5000};
}

static void print(struct world *w)
{
    buf_reset(&w->text);
    metrics_print(&w->source, &w->text);
    buf_append(&w->text, "", 1);
}

/* Whether the text has this line. */
static bool has(const struct world *w, const char *line)
{
    const char *text = (const char *)w->text.p;
    size_t n = strlen(line);

    for (const char *at = text; (at = strstr(at, line)); at++)
        if ((at == text || at[-1] == '\n') && at[n] == '\n')
            return true;
    return false;
}

static void assert_has(const struct world *w, const char *line)
{
    if (!has(w, line))
        fail_msg("no line %s", line);
}

static void assert_has_not(const struct world *w, const char *part)
{
    assert_null(strstr((const char *)w->text.p, part));
}

static void values_stand_behind_their_names(void **state)
{
    struct world w;

    (void)state;
    fill(&w);
    w.partitions[0].bytes = 77;
    w.partitions[0].segments = 2;
    w.source.usage = (struct io_usage){.cpu_ns = 1500 * MS, .start_ms = 1700000000250};
    print(&w);
    assert_has(&w, "strandline_build_info{version=\"v\",cluster_id=\"Q\",node_id=\"4\"} 1");
    assert_has(&w, "kafka_server_kafkaserver_brokerstate 3");
    assert_has(&w, "kafka_server_replicamanager_partitioncount 3");
    assert_has(&w, "kafka_server_replicamanager_leadercount 2");
    assert_has(&w, "kafka_controller_kafkacontroller_activecontrollercount 1");
    assert_has(&w, "kafka_controller_kafkacontroller_globaltopiccount 5");
    assert_has(&w, "kafka_controller_kafkacontroller_globalpartitioncount 50");
    assert_has(&w, "kafka_controller_kafkacontroller_offlinepartitionscount 7");
    assert_has(&w, "kafka_server_replicamanager_underreplicatedpartitions 8");
    assert_has(&w, "kafka_server_replicamanager_underminisrpartitioncount 9");
    assert_has(&w, "kafka_server_replicamanager_offlinereplicacount 1");
    assert_has(&w, "kafka_coordinator_group_groupmetadatamanager_numgroups 31");
    assert_has(&w, "kafka_coordinator_group_groupmetadatamanager_numoffsets 32");
    assert_has(&w, "kafka_server_brokertopicmetrics_messagesin_total 10");
    assert_has(&w, "kafka_server_brokertopicmetrics_messagesin_total{topic=\"u.v\"} 4");
    assert_has(&w, "kafka_server_brokertopicmetrics_bytesin_total{topic=\"t\"} 2");
    assert_has(&w, "kafka_server_brokertopicmetrics_bytesout_total 12");
    assert_has(&w, "strandline_throttled_replication_bytes_total{side=\"leader\"} 13");
    assert_has(&w, "strandline_throttled_replication_bytes_total{side=\"follower\"} 14");
    assert_has(&w, "kafka_log_log_logstartoffset{topic=\"t\",partition=\"12\"} 3");
    assert_has(&w, "kafka_log_log_logendoffset{topic=\"t\",partition=\"12\"} 9");
    assert_has(&w, "kafka_log_log_size{topic=\"t\",partition=\"12\"} 77");
    assert_has(&w, "kafka_log_log_numlogsegments{topic=\"t\",partition=\"12\"} 2");
    assert_has(&w, "strandline_partition_metrics_left_out 1");
    assert_has(&w, "kafka_server_socket_server_metrics_connection_count{listener=\"IN\"} 2");
    assert_has(&w,
               "kafka_server_socket_server_metrics_connection_creation_total{listener=\"IN\"} 7");
    assert_has(&w, "kafka_log_logmanager_offlinelogdirectorycount 1");
    assert_has(&w, "kafka_log_logmanager_logdirectoryoffline{logdirectory=\"/two\"} 1");
    assert_has(&w, "strandline_log_directory_full{logdirectory=\"/one\"} 0");
    assert_has(&w, "process_cpu_seconds_total 1.500");
    assert_has(&w, "process_start_time_seconds 1700000000.250");
    buf_fini(&w.text);
}

static void labels_are_escaped(void **state)
{
    struct world w;

    (void)state;
    fill(&w);
    print(&w);
    assert_has(&w, "kafka_server_socket_server_metrics_connection_count"
                   "{listener=\"a\\\"b\\\\c\\nd\"} 0");
    buf_fini(&w.text);
}

static void a_label_that_is_too_long_is_cut(void **state)
{
    struct world w;
    char path[3000];

    (void)state;
    memset(path, '"', sizeof(path));
    path[sizeof(path) - 1] = '\0';
    fill(&w);
    w.dirs[0].path = path;
    print(&w);
    /* The last sample of all is still there, and whole. */
    assert_has(&w, "process_max_fds 0");
    buf_fini(&w.text);
}

static void requests_have_kafkas_names_and_only_those_that_came(void **state)
{
    struct world w;

    (void)state;
    fill(&w);
    w.apis[0].errors[0] = 6;
    w.apis[1].total.count = 2;
    w.apis[1].errors[4] = 5;
    print(&w);
    assert_has(&w, "kafka_network_requestmetrics_requests_total{request=\"ListOffsets\"} 2");
    assert_has(&w, "kafka_network_requestmetrics_errors_total{request=\"ListOffsets\","
                   "error=\"UNKNOWN_TOPIC_OR_PARTITION\"} 5");
    assert_has(&w, "kafka_network_requestmetrics_errors_total{request=\"Produce\","
                   "error=\"UNKNOWN_SERVER_ERROR\"} 6");
    assert_has_not(&w, "NeverCalled");
    assert_has_not(&w, "requests_total{request=\"Produce\"}");
    buf_fini(&w.text);
}

static void a_histogram_adds_up_to_its_count(void **state)
{
    struct latency l = {0};
    struct world w;

    (void)state;
    fill(&w);
    latency_note(&l, MS / 100);
    latency_note(&l, 2 * MS);
    latency_note(&l, 2 * MS);
    latency_note(&l, 60000 * MS);
    latency_add_to(&l, &w.apis[0].total);
    print(&w);
#define NAME "kafka_network_requestmetrics_totaltimems"
    assert_has(&w, NAME "_bucket{request=\"Produce\",le=\"0.05\"} 1");
    assert_has(&w, NAME "_bucket{request=\"Produce\",le=\"1\"} 1");
    assert_has(&w, NAME "_bucket{request=\"Produce\",le=\"2.5\"} 3");
    assert_has(&w, NAME "_bucket{request=\"Produce\",le=\"10000\"} 3");
    assert_has(&w, NAME "_bucket{request=\"Produce\",le=\"+Inf\"} 4");
    assert_has(&w, NAME "_sum{request=\"Produce\"} 60004.010000");
    assert_has(&w, NAME "_count{request=\"Produce\"} 4");
    assert_has_not(&w, "localtimems_bucket{request=\"Produce\"");
    buf_fini(&w.text);
}

static void the_last_compaction_is_told_once_there_was_one(void **state)
{
    struct world w;

    (void)state;
    fill(&w);
    print(&w);
    assert_has_not(&w, "time_since_last_run_ms");
    w.figures.cleaner = (struct figures_cleaner){.runs = 3, .failed = 1, .last_ms = 4400};
    print(&w);
    assert_has(&w, "kafka_log_logcleanermanager_time_since_last_run_ms 600");
    assert_has(&w, "strandline_log_cleaner_runs_total 3");
    assert_has(&w, "strandline_log_cleaner_failures_total 1");
    buf_fini(&w.text);
}

/* The name that a line is about: of a comment its third word's place, of a sample its beginning. */
static size_t name_of(const char *line, const char **name)
{
    *name = line[0] == '#' ? line + strlen("# TYPE ") : line;
    return strcspn(*name, " {\n");
}

static void every_family_is_one_block_with_help_and_type(void **state)
{
    struct latency l = {0};
    struct world w;
    char family[128] = "";
    char seen[8192] = "\n";

    (void)state;
    fill(&w);
    latency_note(&l, MS);
    latency_add_to(&l, &w.apis[0].total);
    print(&w);
    for (char *line = (char *)w.text.p; *line; line = strchr(line, '\n') + 1) {
        const char *name;
        size_t n = name_of(line, &name);

        if (strncmp(line, "# HELP ", 7) == 0) {
            snprintf(family, sizeof(family), "\n%.*s\n", (int)n, name);
            assert_null(strstr(seen, family));
            memcpy(seen + strlen(seen), family + 1, strlen(family));
            continue;
        }
        /* Samples of a histogram add a suffix to the family's name. */
        assert_true(n >= strlen(family) - 2);
        assert_memory_equal(name, family + 1, strlen(family) - 2);
    }
    buf_fini(&w.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_stand_behind_their_names),
        cmocka_unit_test(labels_are_escaped),
        cmocka_unit_test(a_label_that_is_too_long_is_cut),
        cmocka_unit_test(requests_have_kafkas_names_and_only_those_that_came),
        cmocka_unit_test(a_histogram_adds_up_to_its_count),
        cmocka_unit_test(the_last_compaction_is_told_once_there_was_one),
        cmocka_unit_test(every_family_is_one_block_with_help_and_type),
    };

    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
