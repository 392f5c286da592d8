/* lines.h - lines of words on standard input are commands, and lines on standard output are what was seen. */
#ifndef TEST_UPSTREAM_LINES_H
#define TEST_UPSTREAM_LINES_H

#include <malloc.h>
#include <pmix.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORDS 32

/* Any thread. */
__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    flockfile(stdout);
    puts(line);
    fflush(stdout);
    funlockfile(stdout);
}

/* Split a line of standard input into words. words[n] is NULL. Return n; -1: there is no more line. */
static inline int read_words(char *line, size_t size, char *words[MOST_WORDS + 1])
{
    int n = 0;
    if (fgets(line, (int)size, stdin) == NULL)
        return -1;
    for (char *word = strtok(line, " \n"); word != NULL && n < MOST_WORDS; word = strtok(NULL, " \n"))
        words[n++] = word;
    words[n] = NULL;
    return n;
}

/* Bytes that are allocated. */
static inline void say_heap(void)
{
    say("heap %zu", mallinfo2().uordblks);
}

static inline void say_value(const char *what, pmix_status_t status, const pmix_value_t *value)
{
    if (status != PMIX_SUCCESS || value == NULL)
        say("%s %d -", what, (int)status);
    else if (value->type == PMIX_STRING)
        say("%s %d %.100s", what, (int)status, value->data.string);
    else if (value->type == PMIX_SIZE)
        say("%s %d %zu", what, (int)status, value->data.size);
    else if (value->type == PMIX_UINT32)
        say("%s %d %u", what, (int)status, value->data.uint32);
    else if (value->type == PMIX_DATA_ARRAY && value->data.darray != NULL)
        say("%s %d array %zu", what, (int)status, value->data.darray->size);
    else
        say("%s %d type %d", what, (int)status, (int)value->type);
}

/* "KEY=TEXT" is a string, "KEY#NUMBER" an uint32, "KEY@RANK" a rank, "KEY!" true. */
static inline void load_word(pmix_info_t *info, char *word)
{
    char *at = strpbrk(word, "=#@!");
    bool yes = true;
    if (at == NULL)
        abort();
    const char sign = *at;
    *at++ = '\0';
    uint32_t number = (uint32_t)strtoul(at, NULL, 0);
    if (sign == '=')
        PMIX_INFO_LOAD(info, word, at, PMIX_STRING);
    else if (sign == '#')
        PMIX_INFO_LOAD(info, word, &number, PMIX_UINT32);
    else if (sign == '@')
        PMIX_INFO_LOAD(info, word, &number, PMIX_PROC_RANK);
    else
        PMIX_INFO_LOAD(info, word, &yes, PMIX_BOOL);
}

#endif
