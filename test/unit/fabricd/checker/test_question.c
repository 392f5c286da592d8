/* What fabricd asks its checker, and what that answers: what is put is read, and all else is refused. */
#include <string.h>

#include "fabricd/checker/question.h"
#include "test/fabrics/fabrics.h"
#include "test/unit/test.h"

static const struct checker_question questions[] = {{CHECKER_CREDENTIAL, 1, "MUNGE:AwQFAADR:"},
                                                    {CHECKER_NAME, UINT32_MAX, "node7.example"},
                                                    {CHECKER_ORIGIN, 3, ""}};
static const struct checker_answer answers[] = {{.number = 1, .code = -3, .uid = 0, .gid = UINT32_MAX},
                                                {.number = UINT32_MAX,
                                                 .code = 17,
                                                 .uid = 65534,
                                                 .gid = 1,
                                                 .origin = {0x0700000a},
                                                 .bytes = "a\0b",
                                                 .size = 4}};

enum {
    N_QUESTIONS = sizeof(questions) / sizeof(questions[0]),
    N_ANSWERS = sizeof(answers) / sizeof(answers[0])
};

TEST(what_is_put_is_read)
{
    size_t size;
    for (unsigned i = 0; i < N_QUESTIONS; i++) {
        struct checker_question got;
        uint8_t *bytes = checker_put_question(&questions[i], &size);
        assert_int_equal(checker_length(bytes), size - CHECKER_HEAD);
        assert_int_equal(checker_read_question(bytes + CHECKER_HEAD, size - CHECKER_HEAD, &got), PMIXFAB_OK);
        assert_int_equal(got.kind, questions[i].kind);
        assert_int_equal(got.number, questions[i].number);
        assert_string_equal(got.text, questions[i].text);
        free(bytes);
    }
    for (unsigned i = 0; i < N_ANSWERS; i++) {
        struct checker_answer got;
        uint8_t *bytes = checker_put_answer(&answers[i], &size);
        assert_int_equal(checker_length(bytes), size - CHECKER_HEAD);
        assert_int_equal(checker_read_answer(bytes + CHECKER_HEAD, size - CHECKER_HEAD, &got), PMIXFAB_OK);
        assert_true(got.number == answers[i].number && got.code == answers[i].code &&
                    got.uid == answers[i].uid && got.gid == answers[i].gid &&
                    got.origin.s_addr == answers[i].origin.s_addr);
        assert_int_equal(got.size, answers[i].size);
        if (got.size > 0)
            assert_memory_equal(got.bytes, answers[i].bytes, got.size);
        free(bytes);
    }
}

TEST(what_is_too_large_is_not_put)
{
    static char large[CHECKER_MAX + 1];
    const struct checker_answer answer = {.bytes = large, .size = sizeof(large)};
    const uint8_t head[CHECKER_HEAD] = {0xff, 0xff, 0xff, 0x7f};
    size_t size;
    memset(large, 'a', CHECKER_MAX);
    const struct checker_question question = {CHECKER_NAME, 1, large};
    assert_null(checker_put_question(&question, &size));
    assert_null(checker_put_answer(&answer, &size));
    assert_int_equal(checker_length(head), 0);
}

TEST(a_part_is_none)
{
    struct checker_question question;
    struct checker_answer answer;
    size_t size;
    uint8_t *bytes = checker_put_question(&questions[0], &size);
    for (size_t part = 0; part < size - CHECKER_HEAD; part++) /* the zero at the end is the last byte */
        assert_int_equal(checker_read_question(bytes + CHECKER_HEAD, part, &question), PMIXFAB_ERR_CORRUPT);
    free(bytes);
    bytes = checker_put_answer(&answers[0], &size);
    for (size_t part = 0; part < size - CHECKER_HEAD; part++)
        assert_int_equal(checker_read_answer(bytes + CHECKER_HEAD, part, &answer), PMIXFAB_ERR_CORRUPT);
    free(bytes);
}
