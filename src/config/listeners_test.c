/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listeners are read as Kafka writes them, and the rules between keys refuse what could not work
 * or would be less safe than it looks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "config/config_int.h"

static struct config *load(const char *text)
{
    struct config *c = config_new();
    char *message;

    assert_int_equal(config_load_properties(c, str_of(text), "f", &message), ERR_NONE);
    return c;
}

/* NULL: the file is valid. */
static void check(const char *text, const char *expected)
{
    struct config *c = load(text);
    char *message;
    enum err err = config_validate(c, &message);

    assert_int_equal(err, expected ? ERR_INVALID_CONFIG : ERR_NONE);
    if (expected)
        assert_string_equal(message, expected);
    else
        assert_null(message);
    free(message);
    config_free(c);
}

static void defaults_are_valid(void **state)
{
    (void)state;
    check("", NULL);
}

static void listeners_have_name_host_port_and_protocol(void **state)
{
    struct config *c =
        load("listeners=PLAINTEXT://0.0.0.0:0, in://[::1]:19092,C://:9093,:out://h:1\n"
             "controller.listener.names=C\n"
             "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,IN:plaintext,"
             ":out:SASL_SSL");
    struct config_listener *l;
    struct arena a;

    (void)state;
    arena_init(&a, 0);
    assert_int_equal(config_listeners(c, CONFIG_LISTENERS, &a, &l), 3);
    assert_true(str_eq_c(l[0].name, "PLAINTEXT"));
    assert_true(str_eq_c(l[0].host, "0.0.0.0"));
    assert_int_equal(l[0].port, 0);
    assert_int_equal(l[0].protocol, CONFIG_PROTOCOL_PLAINTEXT);
    assert_true(str_eq_c(l[1].name, "in"));
    assert_true(str_eq_c(l[1].host, "::1"));
    assert_int_equal(l[1].port, 19092);
    assert_int_equal(l[2].protocol, CONFIG_PROTOCOL_SASL_SSL);
    assert_int_equal(config_listeners(c, CONFIG_ADVERTISED_LISTENERS, &a, &l), 0);
    arena_fini(&a);
    config_free(c);
}

static void a_malformed_listener_is_refused(void **state)
{
    static const char *const bad[] = {
        "localhost:9092",      "PLAINTEXT://localhost", "://h:1",        "PLAINTEXT://h:x",
        "PLAINTEXT://h:65536", "PLAINTEXT://h:-1",      "PLAINTEXT://h:"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char text[100];
        char expected[200];

        snprintf(text, sizeof(text), "listeners=%s", bad[i]);
        snprintf(expected, sizeof(expected),
                 "listeners: %s is not name://host:port; for example "
                 "PLAINTEXT://localhost:9092",
                 bad[i]);
        check(text, expected);
    }
}

static void a_listener_with_security_is_refused_and_never_opened_in_plain_text(void **state)
{
    (void)state;
    check("listeners=PLAINTEXT://:1,SASL_SSL://:9093",
          "listeners: listener SASL_SSL asks for SASL_SSL, which is not supported yet; remove it "
          "or use PLAINTEXT on a trusted network");
    check("listeners=X://:9093\nlistener.security.protocol.map=X:SSL",
          "listeners: listener X asks for SSL, which is not supported yet; remove it or use "
          "PLAINTEXT on a trusted network");
    check("listeners=X://:9093", "listeners: listener X has no security protocol; add X:PLAINTEXT "
                                 "to listener.security.protocol.map");
}

static void listeners_are_there_and_differ_by_name(void **state)
{
    (void)state;
    check("listeners=", "listeners: there is none for clients; add PLAINTEXT://localhost:9092");
    check("listeners=C://:1\ncontroller.listener.names=c",
          "listeners: there is none for clients; add PLAINTEXT://localhost:9092");
    check("listeners=PLAINTEXT://a:1,PLAINTEXT://b:2",
          "listeners: two listeners are named PLAINTEXT; give one another name in "
          "listener.security.protocol.map");
}

static void what_is_advertised_can_be_reached(void **state)
{
    (void)state;
    check("advertised.listeners=PLAINTEXT://broker-1:9092", NULL);
    check("advertised.listeners=PLAINTEXT://:9092",
          "advertised.listeners: PLAINTEXT://:9092 is no address that clients could reach; give "
          "the name or address of this host");
    check("advertised.listeners=PLAINTEXT://0.0.0.0:9092",
          "advertised.listeners: PLAINTEXT://0.0.0.0:9092 is no address that clients could reach; "
          "give the name or address of this host");
    check("advertised.listeners=X://h:9092\nlistener.security.protocol.map=X:PLAINTEXT,"
          "PLAINTEXT:PLAINTEXT",
          "advertised.listeners: X is not among listeners; add it there or remove it here");
    check("inter.broker.listener.name=X",
          "inter.broker.listener.name=X is not among listeners; add it there or remove it here");
}

static void a_member_of_a_quorum_is_not_run_alone(void **state)
{
    (void)state;
    check("process.roles=controller", "process.roles=controller is not supported here: this "
                                      "program is always a broker; remove it or add broker");
    check("process.roles=broker", NULL);
    check("controller.quorum.voters=1@a:9093", NULL);
    check("controller.quorum.voters=1@a:9093,2@b:9093",
          "controller.quorum.voters names several controllers, but there is no controller quorum "
          "here; remove it to run a broker of its own");
    check("controller.quorum.bootstrap.servers=a:9093,b:9093",
          "controller.quorum.bootstrap.servers names several controllers, but there is no "
          "controller quorum here; remove it to run a broker of its own");
}

static void check_http(const char *text, const char *host, int32_t port)
{
    struct config *c = load(text);
    struct str found = str_null();
    uint16_t found_port;

    assert_int_equal(config_http_address(c, &found, &found_port), host != NULL);
    if (host)
        assert_true(str_eq_c(found, host));
    assert_int_equal(found_port, port);
    config_free(c);
}

static void an_address_for_http_is_a_host_and_a_port(void **state)
{
    (void)state;
    check_http("", NULL, 0);
    check_http("http.address=", NULL, 0);
    check_http("http.address=127.0.0.1:9464", "127.0.0.1", 9464);
    check_http("http.address=[::1]:0", "::1", 0);
    check_http("http.address=:65535", "", 65535);
    check("http.address=", NULL);
    check("http.address=localhost:1", NULL);
    check("http.address=9464", "http.address=9464 is not host:port; for example 127.0.0.1:9464");
    check("http.address=h:65536",
          "http.address=h:65536 is not host:port; for example 127.0.0.1:9464");
}

static void keys_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    check("node.id=3\nbroker.id=3", NULL);
    check("node.id=3\nbroker.id=4", "node.id=3 and broker.id=4 differ; remove broker.id");
    check("log.dirs=/a,/b,/a", "log.dirs names /a twice; remove one");
    check("default.replication.factor=3", "default.replication.factor=3 needs other brokers; set "
                                          "zookeeper.connect, or remove it");
    check("default.replication.factor=3\nzookeeper.connect=x:2181", NULL);
    check("log.dirs=,", "log.dirs is empty; name a directory or remove it");
    check("queued.max.request.bytes=1048576",
          "queued.max.request.bytes=1048576 holds less than one request of "
          "socket.request.max.bytes=104857600; raise the first");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_valid),
        cmocka_unit_test(listeners_have_name_host_port_and_protocol),
        cmocka_unit_test(a_malformed_listener_is_refused),
        cmocka_unit_test(a_listener_with_security_is_refused_and_never_opened_in_plain_text),
        cmocka_unit_test(listeners_are_there_and_differ_by_name),
        cmocka_unit_test(what_is_advertised_can_be_reached),
        cmocka_unit_test(a_member_of_a_quorum_is_not_run_alone),
        cmocka_unit_test(an_address_for_http_is_a_host_and_a_port),
        cmocka_unit_test(keys_that_contradict_each_other_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
