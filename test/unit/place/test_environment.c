/* Variables that name a device: their forms, whose values stay, and for which devices there are none. */
#include "place/environment.h"
#include "test/unit/place_host.h"

#define ALL (FAB_ENV_UCX | FAB_ENV_NCCL | FAB_ENV_OFI)

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
