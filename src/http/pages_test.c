/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which page a request gets, and what health and readiness say in each state of a broker.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "http/http_int.h"

static void a_page_is_found_by_its_path(void **state)
{
    (void)state;
    assert_int_equal(page_find("GET", "/"), PAGE_INDEX);
    assert_int_equal(page_find("GET", "/healthz"), PAGE_HEALTH);
    assert_int_equal(page_find("HEAD", "/readyz"), PAGE_READY);
    assert_int_equal(page_find("GET", "/metrics"), PAGE_METRICS);
    assert_int_equal(page_find("GET", "/metrics/"), PAGE_NOT_FOUND);
    assert_int_equal(page_find("GET", ""), PAGE_NOT_FOUND);
    assert_int_equal(page_find("GET", "/../etc/passwd"), PAGE_NOT_FOUND);
}

static void other_methods_are_refused_where_there_is_a_page(void **state)
{
    (void)state;
    assert_int_equal(page_find("POST", "/metrics"), PAGE_NOT_ALLOWED);
    assert_int_equal(page_find("get", "/healthz"), PAGE_NOT_ALLOWED);
    assert_int_equal(page_find("DELETE", "/nowhere"), PAGE_NOT_FOUND);
}

static void check(enum page_kind kind, const struct figures *f, int status, const char *text)
{
    struct page_source source = {.figures = f};
    struct page page;

    page_make(kind, &source, &page);
    assert_int_equal(page.status, status);
    assert_int_equal(page.body.n, strlen(text));
    assert_memory_equal(page.body.p, text, page.body.n);
    assert_string_equal(page.type, "text/plain; charset=utf-8");
    buf_fini(&page.body);
}

static void a_broker_is_ready_while_it_serves(void **state)
{
    struct figures_dir dir = {.path = "d"};
    struct figures f = {.dirs = &dir, .dir_count = 1};

    (void)state;
    check(PAGE_HEALTH, &f, 200, "ok\n");
    check(PAGE_READY, &f, 503, "starting: logs are being recovered\n");
    f.phase = FIGURES_SERVING;
    check(PAGE_HEALTH, &f, 200, "ok\n");
    check(PAGE_READY, &f, 200, "ok\n");
    f.phase = FIGURES_STOPPING;
    check(PAGE_HEALTH, &f, 200, "ok\n");
    check(PAGE_READY, &f, 503, "stopping\n");
}

static void a_broker_is_healthy_while_one_directory_works(void **state)
{
    struct figures_dir dirs[2] = {{.has_failed = true}, {.has_failed = false}};
    struct figures f = {.phase = FIGURES_SERVING, .dirs = dirs, .dir_count = 2};

    (void)state;
    check(PAGE_HEALTH, &f, 200, "ok\n");
    dirs[1].has_failed = true;
    check(PAGE_HEALTH, &f, 503, "every log directory has failed\n");
}

static void a_broker_that_stops_for_a_reason_is_not_healthy(void **state)
{
    struct figures_dir dir = {.path = "d"};
    struct figures f = {
        .phase = FIGURES_STOPPING,
        .stop_err = ERR_KAFKA_STORAGE_ERROR,
        .dirs = &dir,
        .dir_count = 1,
    };

    (void)state;
    check(PAGE_HEALTH, &f, 503, "stopping after a failure\n");
}

static void the_other_pages_need_no_figures(void **state)
{
    static const struct {
        enum page_kind kind;
        int status;
    } pages[] = {{PAGE_INDEX, 200}, {PAGE_NOT_FOUND, 404}, {PAGE_NOT_ALLOWED, 405}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        struct page page;

        page_make(pages[i].kind, NULL, &page);
        assert_int_equal(page.status, pages[i].status);
        assert_true(page.body.n > 0);
        buf_fini(&page.body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_found_by_its_path),
        cmocka_unit_test(other_methods_are_refused_where_there_is_a_page),
        cmocka_unit_test(a_broker_is_ready_while_it_serves),
        cmocka_unit_test(a_broker_is_healthy_while_one_directory_works),
        cmocka_unit_test(a_broker_that_stops_for_a_reason_is_not_healthy),
        cmocka_unit_test(the_other_pages_need_no_figures),
    };

    return cmocka_run_group_tests_name("pages", tests, NULL, NULL);
}
