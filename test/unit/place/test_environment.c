/* Variables that name a device: their forms, whose values stay, and for which devices there are none. */
#include "place/environment.h"

#include <strings.h>

#include "test/unit/place_host.h"

#define ALL  (FAB_ENV_UCX | FAB_ENV_NCCL | FAB_ENV_OFI)
#define MORE (FAB_ENV_PSM3 | FAB_ENV_OPX | FAB_ENV_NVSHMEM)

static const struct place_device one[3] = {
    {NULL, NULL, "mlx5_0", false}, {NULL, NULL, NULL, false}, {NULL, NULL, "mlx5_2", true}};

/* The settings as "NAME=VALUE NAME=VALUE". */
static const char *settings(const struct pmixfab *fab, uint32_t device, unsigned wanted, char *const *env)
{
    struct fab_env_setting out[FAB_ENV_SETTINGS];
    const char *text = "";
    const unsigned n = fab_env_settings(fab, device, wanted, env, out);
    for (unsigned i = 0; i < n; i++)
        text = printed("%s%s%s=%s", text, i > 0 ? " " : "", out[i].name, out[i].value);
    return text;
}

TEST(whose_value_counts)
{
    static const struct {
        const char *text;
        int rc;
        const char *chosen[2]; /* of three values, and where the site has none */
    } all[] = {{NULL, 0, {"s", "f"}},
               {"", 0, {"s", "f"}},
               {"library", 0, {"l", "l"}},
               {"fabricd,site", 0, {"f", "f"}},
               {"site,library,fabricd", 0, {"s", "l"}},
               {"library,library", PMIXFAB_ERR_SYNTAX, {"l", "l"}},
               {"fabricd,sit", PMIXFAB_ERR_SYNTAX, {"f", "f"}},
               {"sites", PMIXFAB_ERR_SYNTAX, {"s", "f"}},
               {",", PMIXFAB_ERR_SYNTAX, {"s", "f"}}};
    const char *const none[FAB_ENV_FROMS] = {NULL};
    const char *const values[FAB_ENV_FROMS] = {"s", "f", "l"}, *const no_site[FAB_ENV_FROMS] = {NULL, "f",
                                                                                                "l"};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        enum fab_env_from order[FAB_ENV_FROMS];
        assert_int_equal(fab_env_order_parse(all[i].text, order), all[i].rc);
        assert_string_equal(fab_env_choose(order, values), all[i].chosen[0]);
        assert_string_equal(fab_env_choose(order, no_site), all[i].chosen[1]);
        assert_null(fab_env_choose(order, none));
    }
    unsigned n = 0;
    while (fab_env_variable(n) != NULL)
        n++;
    assert_int_equal(n, FAB_ENV_VARIABLES);
}

TEST(words_of_the_parameter)
{
    unsigned wanted = 99;
    assert_int_equal(fab_env_parse(NULL, &wanted), 0);
    assert_int_equal(wanted, 0);
    assert_int_equal(fab_env_parse("", &wanted), 0);
    assert_int_equal(wanted, 0);
    assert_int_equal(fab_env_parse("ofi,ucx", &wanted), 0);
    assert_int_equal(wanted, FAB_ENV_OFI | FAB_ENV_UCX);
    assert_int_equal(fab_env_parse("ucx,nccl,ofi", &wanted), 0);
    assert_int_equal(wanted, ALL);
    assert_int_equal(fab_env_parse("nvshmem,opx,psm3", &wanted), 0);
    assert_int_equal(wanted, MORE);
    for (const char *const *bad = (const char *const[]){"uc", "ucxx", "ucx, nccl", ",ucx", "UCX", NULL}; *bad;
         bad++)
        if (fab_env_parse(*bad, &wanted) != PMIXFAB_ERR_SYNTAX)
            fail_msg("%s is taken", *bad);
}

TEST(forms)
{
    OWNED(pmixfab_close) struct pmixfab *fab = place_open(one, 3);
    assert_string_equal(settings(fab, 0, ALL, NULL),
                        "UCX_NET_DEVICES=mlx5_0:1 NCCL_IB_HCA==mlx5_0:1 FI_VERBS_DEVICE_NAME=mlx5_0");
    assert_string_equal(settings(fab, 0, FAB_ENV_NCCL, NULL), "NCCL_IB_HCA==mlx5_0:1");
    assert_string_equal(settings(fab, 0, 0, NULL), "");
}

/* What psm3, opx and NVSHMEM make of a text: a transcript of their readers in words (docs/design/place.md).
 */

/* psm3: "any", a number, else a pattern. Return whether it means the device of this name, and no other. */
static bool psm3_means(const char *text, const char *name)
{
    char *end;
    if (strcasecmp(text, "any") == 0)
        return false;
    for (int base = 10; base <= 16; base += 6)
        if (strtol(text, &end, base), end != text && *end == '\0')
            return false;
    return strpbrk(text, "*?[]\\+@!()|") == NULL && strcmp(text, name) == 0;
}

/* opx: all digits, a unit; its files are in /sys/class/infiniband/hfi1_UNIT. */
static bool opx_means(const char *text, const char *name)
{
    char *end;
    const long unit = strtol(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && unit <= INT32_MAX &&
           strcmp(printed("hfi1_%ld", unit), name) == 0;
}

/* NVSHMEM: "^" excludes; NAME[:PORT[:COUNT]] with commas between; names are compared as a whole. */
static bool nvshmem_means(const char *text, const char *name)
{
    const size_t n = strcspn(text, ":,");
    return text[0] != '^' && n == strlen(name) && strncmp(text, name, n) == 0 && strcmp(text + n, ":1") == 0;
}

TEST(forms_that_are_read)
{
    static const struct {
        const char *name;
        bool psm3, opx;
    } all[] = {{"mlx5_0", true, false},  {"hfi1_0", true, true},
               {"hfi1_12", true, true},  {"hfi1_01", true, false},
               {"hfi1_", true, false},   {"hfi1_0x", true, false},
               {"xhfi1_0", true, false}, {"hfi1_12345678901", true, false},
               {"opap1s0", true, false}, {"rocep1s0f0", true, false},
               {"ibp65s0", true, false}, {"efa0", false, false},
               {"any", false, false},    {"Any", false, false},
               {"any0", true, false},    {"12", false, false},
               {"0x1", false, false},    {"bnxt_re0", true, false}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const struct place_device device = {NULL, NULL, all[i].name, false};
        OWNED(pmixfab_close) struct pmixfab *fab = place_open(&device, 1);
        struct fab_env_setting out[FAB_ENV_SETTINGS];
        unsigned seen = 0;
        const unsigned n = fab_env_settings(fab, 0, MORE, NULL, out);
        for (unsigned s = 0; s < n; s++) {
            const bool psm3 = strcmp(out[s].name, "PSM3_NIC") == 0;
            const bool opx = strcmp(out[s].name, "FI_OPX_HFI_SELECT") == 0;
            seen |= psm3 ? FAB_ENV_PSM3 : opx ? FAB_ENV_OPX : FAB_ENV_NVSHMEM;
            if (!(psm3 ? psm3_means : opx ? opx_means : nvshmem_means)(out[s].value, all[i].name))
                fail_msg("%s=%s does not mean %s", out[s].name, out[s].value, all[i].name);
        }
        assert_int_equal(seen,
                         (all[i].psm3 ? FAB_ENV_PSM3 : 0) | (all[i].opx ? FAB_ENV_OPX : 0) | FAB_ENV_NVSHMEM);
    }
}

TEST(what_the_user_set_stays)
{
    OWNED(pmixfab_close) struct pmixfab *fab = place_open(one, 3);
    char *const same[] = {"A=b", "UCX_NET_DEVICES=mlx5_3:1", "NCCL_IB_HCA=", "FI_VERBS_DEVICE_NAME=mlx5_1",
                          NULL};
    char *const contradicts[] = {"UCX_TLS=tcp", "FI_VERBS_IFACE=ib1", "NCCL_IB_HCAS=1", NULL};
    char *const others[] = {"UCX_NET_DEVICES_X=1", "NCCL", "XNCCL_IB_HCA=1", "ucx_net_devices=1", NULL};
    assert_string_equal(settings(fab, 0, ALL, same), "");
    assert_string_equal(settings(fab, 0, ALL, contradicts), "NCCL_IB_HCA==mlx5_0:1");
    assert_string_equal(settings(fab, 0, ALL, others), settings(fab, 0, ALL, NULL));
    char *const more[] = {"PSM3_MULTIRAIL=1", "NVSHMEM_HCA_PE_MAPPING=mlx5_1:1:2", NULL};
    char *const hal[] = {"PSM3_HAL=sockets", NULL};
    assert_string_equal(settings(fab, 0, MORE, NULL), "PSM3_NIC=mlx5_0 NVSHMEM_HCA_LIST=mlx5_0:1");
    assert_string_equal(settings(fab, 0, MORE, more), "");
    assert_string_equal(settings(fab, 0, MORE, hal), "NVSHMEM_HCA_LIST=mlx5_0:1");
}

TEST(environments_that_are_full_or_malformed)
{
    OWNED(pmixfab_close) struct pmixfab *fab = place_open(one, 3);
    char *const odd[] = {"", "=", "==", "UCX_NET_DEVICES", "\377\377=\1", "NO_EQUALS_SIGN", NULL};
    const size_t n = 300000;
    char **full = must_have((n + 2) * sizeof(*full));
    assert_string_equal(settings(fab, 0, FAB_ENV_UCX, odd), "");
    assert_string_equal(settings(fab, 0, FAB_ENV_NCCL, odd), "NCCL_IB_HCA==mlx5_0:1");
    for (size_t i = 0; i < n; i++)
        full[i] = "X=1";
    full[n] = "UCX_NET_DEVICES=mine";
    assert_string_equal(settings(fab, 0, FAB_ENV_UCX, full), "");
    free(full);
}

TEST(no_device_that_the_node_does_not_have)
{
    OWNED(pmixfab_close) struct pmixfab *fab = place_open(one, 3);
    assert_string_equal(settings(fab, 1, ALL, NULL), ""); /* only the sweep has a name for it */
    assert_string_equal(settings(fab, 2, ALL, NULL), ""); /* down */
    assert_string_equal(settings(fab, 3, ALL, NULL), "");
    assert_string_equal(settings(fab, UINT32_MAX, ALL, NULL), "");
    assert_string_equal(settings(NULL, 0, ALL, NULL), "");
}

TEST(names_that_mean_something_else)
{
    static const char *const names[] = {"^mlx5_0", "=mlx5_0", "mlx5_0,mlx5_1", "mlx5_0:1", "a b",
                                        "all*",    NULL};
    for (size_t i = 0; names[i] != NULL; i++) {
        const struct place_device device = {NULL, NULL, names[i], false};
        OWNED(pmixfab_close) struct pmixfab *fab = place_open(&device, 1);
        assert_string_equal(settings(fab, 0, ALL, NULL), "");
    }
}
