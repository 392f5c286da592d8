/*
 * Any bytes as a message between fabricd and the processes that strangers may have taken over: the front and
 * the checker. The first byte says which decoder gets the rest. What one takes can be read to its ends, and
 * gives the same bytes when it is put again.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/checker/question.h"
#include "fabricd/front/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void message_of_front(const uint8_t *bytes, size_t size)
{
    struct front_received received;
    if (front_message_read(bytes, size, &received) != PMIXFAB_OK)
        return;
    struct evbuffer *again = evbuffer_new();
    must(again != NULL && front_message_put(again, &received.message) == PMIXFAB_OK);
    must(evbuffer_get_length(again) == FRONT_HEAD + size);
    must(memcmp(evbuffer_pullup(again, -1) + FRONT_HEAD, bytes, size) == 0);
    evbuffer_free(again);
    front_message_free(&received);
}

static void same_again(uint8_t *again, size_t n, const uint8_t *bytes, size_t size)
{
    must(again != NULL && n == CHECKER_HEAD + size && checker_length(again) == size);
    must(memcmp(again + CHECKER_HEAD, bytes, size) == 0);
    free(again);
}

static void question_of_checker(const uint8_t *bytes, size_t size)
{
    struct checker_question question;
    size_t n;
    if (checker_read_question(bytes, size, &question) == PMIXFAB_OK) {
        uint8_t *again = checker_put_question(&question, &n);
        same_again(again, n, bytes, size);
    }
}

static void answer_of_checker(const uint8_t *bytes, size_t size)
{
    struct checker_answer answer;
    size_t n;
    if (checker_read_answer(bytes, size, &answer) == PMIXFAB_OK) {
        uint8_t *again = checker_put_answer(&answer, &n);
        same_again(again, n, bytes, size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const decoders[])(const uint8_t *, size_t) = {message_of_front, question_of_checker,
                                                                answer_of_checker};
    if (size > 0)
        decoders[data[0] % 3](data + 1, size - 1);
    return 0;
}
