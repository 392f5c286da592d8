/* What a component's file says it was built for, and whether the library here loads it. */
#include <unistd.h>

#include "fabricd/base/components.h"
#include "test/unit/test.h"

static char folder[] = "/tmp/test_components.XXXXXX";
static unsigned n_files;
static char files[16][128];

FIXTURE(make)
{
    return mkdtemp(folder) == NULL;
}

FIXTURE(clean)
{
    while (n_files > 0)
        unlink(files[--n_files]);
    return rmdir(folder);
}

static const char *put(const char *name, const char *bytes, size_t size)
{
    char *path = files[n_files++];
    snprintf(path, sizeof(files[0]), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    return path;
}
#define PUT(name, bytes) put(name, bytes, sizeof(bytes))

static struct {
    unsigned fits, spare, unfit;
    char text[512];
} told;

static void tell(enum component_fit fit, const char *path, const char *text, void *cbdata)
{
    (void)path, (void)cbdata;
    told.fits += fit == COMPONENT_FITS;
    told.spare += fit == COMPONENT_SPARE;
    told.unfit += fit == COMPONENT_UNFIT;
    if (fit == COMPONENT_UNFIT)
        snprintf(told.text, sizeof(told.text), "%s", text);
}

static unsigned look(const char *folders, const char *library)
{
    memset(&told, 0, sizeof(told));
    return components_look_at(folders, library, tell, NULL);
}

TEST_WITH(versions, make, NULL)
{
    struct component_note note;
    char version[COMPONENT_VERSION];
    assert_true(component_note_read(PUT("note", "\x7f"
                                                "ELF\0FABRICD_BUILT_FOR=7.0.0rc1 pnet 3.0.0\0rest"),
                                    &note));
    assert_string_equal(note.version, "7.0.0rc1");
    assert_string_equal(note.framework, "pnet 3.0.0");
    assert_true(component_library_read(
        PUT("late", "OpenPMIx version\0OpenPMIx 7.0.0rc1 (PMIx Standard: 4.1)"), version));
    assert_string_equal(version, "7.0.0rc1");
    assert_true(component_library_read(PUT("early", "OpenPMIx 4.2.2, repo rev: v4.2.2"), version));
    assert_string_equal(version, "4.2.2");

    /* None, an empty one, one without an end, and a long one. */
    assert_false(component_note_read(PUT("none", "FABRICD_BUILT_FOR=x"), &note));
    assert_false(component_note_read(PUT("empty", ""), &note));
    assert_false(component_note_read(put("cut", "FABRICD_BUILT_FOR=7.0.0", 23), &note));
    assert_false(component_note_read("/nonexistent", &note));
    char many[200] = "FABRICD_BUILT_FOR=7";
    memset(many + 19, '7', sizeof(many) - 20);
    assert_false(component_note_read(put("long", many, sizeof(many)), &note));
    assert_string_equal(note.version, "");
    assert_false(component_library_read("/nonexistent", version));
}

TEST_WITH(fits_spare_and_unfit, NULL, clean)
{
    char twice[300];
    PUT("pmix_mca_pnet_fabricd.so", "FABRICD_BUILT_FOR=7.0.0rc1 pnet 3.0.0");
    PUT("pmix_mca_pnet_fabricd_6.so", "FABRICD_BUILT_FOR=6.1.0 pnet 1.0.0");
    PUT("pmix_mca_pmdl_fabricd_6.so", "FABRICD_BUILT_FOR=6.1.0 pmdl 1.0.0");
    PUT("pmix_mca_pnet_other.so", "FABRICD_BUILT_FOR=6.1.0 pnet 1.0.0");
    snprintf(twice, sizeof(twice), "%s::/nonexistent:%s", folder, folder);
    assert_int_equal(look(twice, "7.0.0rc1"), 3);
    assert_int_equal(told.fits, 1);
    assert_int_equal(told.spare, 1);
    assert_int_equal(told.unfit, 1);
    assert_non_null(
        strstr(told.text, "built for PMIx 6.1.0 (pmdl 1.0.0), but PMIx 7.0.0rc1 is installed here"));
    assert_int_equal(look(folder, "6.1.0"), 3);
    assert_int_equal(told.unfit, 0);
    assert_int_equal(look(folder, NULL), 3);
    assert_int_equal(told.unfit, 3);
    assert_non_null(strstr(told.text, "no libpmix.so.2"));
    PUT("pmix_mca_pmdl_fabricd.so", "an earlier one");
    look(folder, "6.1.0");
    assert_int_equal(told.unfit, 1);
    assert_non_null(strstr(told.text, "an earlier fabricd"));
    assert_int_equal(look("", "6.1.0"), 0);
}
