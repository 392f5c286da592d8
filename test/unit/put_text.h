/* put_text.h - everything that a job is told, as one text: what two ways of telling it must agree upon. */
#ifndef FAB_TEST_PUT_TEXT_H
#define FAB_TEST_PUT_TEXT_H

#include "pmix/launch/launch.h"
#include "test/unit/test.h"

static void put_text_value(FILE *out, const pmix_value_t *value);

static inline void put_text_infos(FILE *out, const pmix_info_t *infos, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fprintf(out, " %s/%x=", infos[i].key, infos[i].flags);
        put_text_value(out, &infos[i].value);
    }
}

static inline void put_text_coord(FILE *out, const pmix_coord_t *coord)
{
    fprintf(out, " %u:", coord->view);
    for (size_t d = 0; d < coord->dims; d++)
        fprintf(out, "%u,", coord->coord[d]);
}

static inline void put_text_geometry(FILE *out, const pmix_geometry_t *geometry)
{
    fprintf(out, " %zu %s %s", geometry->fabric, geometry->uuid, geometry->osname);
    for (size_t i = 0; i < geometry->ncoords; i++)
        put_text_coord(out, &geometry->coordinates[i]);
}

static inline void put_text_array(FILE *out, const pmix_data_array_t *array)
{
    fprintf(out, "%u[", array->type);
    for (size_t i = 0; i < array->size; i++)
        switch (array->type) {
        case PMIX_INFO:
            put_text_infos(out, (pmix_info_t *)array->array + i, 1);
            break;
        case PMIX_STRING:
            fprintf(out, " %s", ((char **)array->array)[i]);
            break;
        case PMIX_UINT32:
            fprintf(out, " %u", ((uint32_t *)array->array)[i]);
            break;
        case PMIX_GEOMETRY:
            put_text_geometry(out, (pmix_geometry_t *)array->array + i);
            break;
        default:
            fail_msg("an array of type %u", array->type);
        }
    fputc(']', out);
}

static void put_text_value(FILE *out, const pmix_value_t *value)
{
    fprintf(out, "%u ", value->type);
    switch (value->type) {
    case PMIX_STRING:
        fputs(value->data.string, out);
        break;
    case PMIX_UINT32:
        fprintf(out, "%u", value->data.uint32);
        break;
    case PMIX_UINT64:
        fprintf(out, "%llu", (unsigned long long)value->data.uint64);
        break;
    case PMIX_SIZE:
        fprintf(out, "%zu", value->data.size);
        break;
    case PMIX_LINK_STATE:
        fprintf(out, "%d", value->data.linkstate);
        break;
    case PMIX_COORD:
        put_text_coord(out, value->data.coord);
        break;
    case PMIX_GEOMETRY:
        put_text_geometry(out, value->data.geometry);
        break;
    case PMIX_DATA_ARRAY:
        put_text_array(out, value->data.darray);
        break;
    default:
        fail_msg("a value of type %u", value->type);
    }
}

static inline pmix_status_t put_text(void *to, pmix_rank_t rank, const char *key, pmix_value_t *value)
{
    fprintf(to, "%u %s: ", rank, key);
    put_text_value(to, value);
    fputc('\n', to);
    return PMIX_SUCCESS;
}

/* A text to free(). Not inline: gcc 12 would take it for the local pointer to it. */
static __attribute__((noinline, unused)) char *put_text_job(const struct fab_launch_job *job,
                                                            struct fab_launch_told *told)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(fab_launch_fill(job, put_text, out, told), PMIX_SUCCESS);
    assert_int_equal(fclose(out), 0);
    return text;
}

#endif
