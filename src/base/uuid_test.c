/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka's Uuid and its text. */
#include "base/uuid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

static void a_known_id_has_its_known_text(void **state)
{
    struct uuid u;
    struct uuid back;
    char text[UUID_TEXT_BYTES];

    (void)state;
    for (int i = 0; i < 16; i++)
        u.b[i] = (uint8_t)i;
    uuid_to_text(u, text);
    assert_string_equal(text, "AAECAwQFBgcICQoLDA0ODw");
    assert_int_equal(uuid_from_text(str_of(text), &back), ERR_NONE);
    assert_true(uuid_eq(u, back));
    uuid_to_text(uuid_zero(), text);
    assert_string_equal(text, "AAAAAAAAAAAAAAAAAAAAAA");
    memset(u.b, 0xff, sizeof(u.b));
    uuid_to_text(u, text);
    assert_string_equal(text, "_____________________w");
}

static void any_id_survives_its_text(void **state)
{
    struct rng rng = rng_seeded(1);

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct uuid u = uuid_from_random(rng_u64(&rng), rng_u64(&rng));
        struct uuid back;
        char text[UUID_TEXT_BYTES];

        uuid_to_text(u, text);
        assert_true(text[0] != '-');
        assert_int_equal(u.b[6] >> 4, 4);
        assert_int_equal(u.b[8] >> 6, 2);
        assert_int_equal(uuid_from_text(str_of(text), &back), ERR_NONE);
        assert_true(uuid_eq(u, back));
    }
}

static void other_texts_are_refused(void **state)
{
    static const char *const texts[] = {
        NULL,
        "",
        "AAECAwQFBgcICQoLDA0OD",
        "AAECAwQFBgcICQoLDA0ODwA",
        "AAECAwQFBgcICQoLDA0OD=",
        "AAECAwQFBgcI+QoLDA0ODw",
        /* Four bits behind the last byte are set: a second text for the same id. */
        "AAECAwQFBgcICQoLDA0ODx",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct uuid u;

        assert_int_equal(uuid_from_text(str_of(texts[i]), &u), ERR_MALFORMED);
        assert_true(uuid_is_zero(u));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_id_has_its_known_text),
        cmocka_unit_test(any_id_survives_its_text),
        cmocka_unit_test(other_texts_are_refused),
    };

    return cmocka_run_group_tests_name("uuid", tests, NULL, NULL);
}
