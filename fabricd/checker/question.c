#include "fabricd/checker/question.h"

#include <stdlib.h>
#include <string.h>

#include "topo/base/frame.h"

enum {
    QUESTION_FIELDS = 1 + 4,          /* kind, number; then the text with its zero */
    ANSWER_FIELDS = 4 + 4 + 4 + 4 + 4 /* number, code, uid, gid, origin; then the bytes */
};

/* Room for it, with the head written; *at: behind that. */
static uint8_t *question_room(size_t length, size_t *size, uint8_t **at)
{
    uint8_t *bytes = length > CHECKER_MAX ? NULL : malloc(CHECKER_HEAD + length);
    *size = CHECKER_HEAD + length;
    if (bytes != NULL)
        *at = frame_put(bytes, length, CHECKER_HEAD);
    return bytes;
}

uint8_t *checker_put_question(const struct checker_question *question, size_t *size)
{
    const size_t text = strlen(question->text) + 1;
    uint8_t *at, *bytes = question_room(QUESTION_FIELDS + text, size, &at);
    if (bytes == NULL)
        return NULL;
    at = frame_put(at, question->kind, 1);
    at = frame_put(at, question->number, 4);
    memcpy(at, question->text, text);
    return bytes;
}

uint8_t *checker_put_answer(const struct checker_answer *answer, size_t *size)
{
    uint8_t *at,
        *bytes = answer->size > CHECKER_MAX ? NULL : question_room(ANSWER_FIELDS + answer->size, size, &at);
    if (bytes == NULL)
        return NULL;
    at = frame_put(at, answer->number, 4);
    at = frame_put(at, (uint32_t)answer->code, 4);
    at = frame_put(at, answer->uid, 4);
    at = frame_put(at, answer->gid, 4);
    at = frame_put(at, answer->origin.s_addr, 4);
    if (answer->size > 0)
        memcpy(at, answer->bytes, answer->size);
    return bytes;
}

size_t checker_length(const void *head)
{
    struct frame in = {.at = head, .end = (const uint8_t *)head + CHECKER_HEAD};
    const uint64_t length = frame_get(&in, CHECKER_HEAD);
    return length > CHECKER_MAX ? 0 : (size_t)length;
}

int checker_read_question(const void *bytes, size_t size, struct checker_question *out)
{
    struct frame in = {.at = bytes, .end = (const uint8_t *)bytes + size};
    const uint64_t kind = frame_get(&in, 1);
    out->kind = (enum checker_kind)kind;
    out->number = (uint32_t)frame_get(&in, 4);
    const size_t text = frame_left(&in);
    out->text = (const char *)frame_bytes(&in, text);
    if (in.overrun || kind == 0 || kind >= CHECKER_KINDS || text == 0 ||
        memchr(out->text, '\0', text) != out->text + text - 1)
        return PMIXFAB_ERR_CORRUPT;
    return PMIXFAB_OK;
}

int checker_read_answer(const void *bytes, size_t size, struct checker_answer *out)
{
    struct frame in = {.at = bytes, .end = (const uint8_t *)bytes + size};
    out->number = (uint32_t)frame_get(&in, 4);
    out->code = (int)(int32_t)(uint32_t)frame_get(&in, 4);
    out->uid = (uid_t)frame_get(&in, 4);
    out->gid = (gid_t)frame_get(&in, 4);
    out->origin.s_addr = (in_addr_t)frame_get(&in, 4);
    out->size = frame_left(&in);
    out->bytes = frame_bytes(&in, out->size);
    return in.overrun ? PMIXFAB_ERR_CORRUPT : PMIXFAB_OK;
}
