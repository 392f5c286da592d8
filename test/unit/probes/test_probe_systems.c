/* Libibnetdisc's search for chassis is spared, and nothing else of it changes. */

#ifdef HAVE_IBNETDISC
#include <infiniband/mad.h>

#include "probes/ibnetdisc/ibnetdisc.h"
#include "probes/registry.h"
#include "test/unit/test.h"

#define CACHE TEST_DATA "/ibsim_small.cache"

/* Loading a cache ends with the same search as a discovery. */
static ibnd_fabric_t *load(bool hide)
{
    ibnetdisc_hide_systems(hide);
    ibnd_fabric_t *fabric = ibnd_load_fabric(CACHE, 0);
    ibnetdisc_hide_systems(false);
    assert_non_null(fabric);
    return fabric;
}

TEST(test_the_search_is_spared)
{
    ibnd_fabric_t *with = load(false), *without = load(true);
    assert_non_null(with->chassis);
    assert_null(without->chassis);
    ibnd_destroy_fabric(with);
    ibnd_destroy_fabric(without);
}

TEST(test_nodes_are_the_same)
{
    unsigned n = 0;
    ibnd_fabric_t *with = load(false), *without = load(true);
    for (ibnd_node_t *node = with->nodes; node != NULL; node = node->next, n++) {
        ibnd_node_t *same = ibnd_find_node_guid(without, node->guid);
        assert_non_null(same);
        assert_int_equal(same->numports, node->numports);
        assert_memory_equal(same->info, node->info, sizeof(node->info));
        assert_string_equal(same->nodedesc, node->nodedesc);
        assert_true(mad_get_field64(same->info, 0, IB_NODE_SYSTEM_GUID_F) != 0);
        for (int p = 1; p <= node->numports; p++) {
            assert_int_equal(same->ports[p] == NULL, node->ports[p] == NULL);
            if (node->ports[p] != NULL)
                assert_true(same->ports[p]->guid == node->ports[p]->guid);
        }
    }
    assert_true(n > 4);
    ibnd_destroy_fabric(with);
    ibnd_destroy_fabric(without);
}

TEST(test_only_that_field_is_hidden)
{
    uint8_t info[IB_SMP_DATA_SIZE];
    for (size_t i = 0; i < sizeof(info); i++)
        info[i] = (uint8_t)(i + 1);
    assert_true(mad_get_field64(info, 0, IB_NODE_SYSTEM_GUID_F) == 0x05060708090a0b0cull);
    ibnetdisc_hide_systems(true);
    assert_true(mad_get_field64(info, 0, IB_NODE_SYSTEM_GUID_F) == 0);
    assert_true(mad_get_field64(info, 0, IB_NODE_GUID_F) == 0x0d0e0f1011121314ull);
    assert_true(mad_get_field64(info, 8, IB_NODE_GUID_F) == 0x15161718191a1b1cull);
    ibnetdisc_hide_systems(false);
    assert_true(mad_get_field64(info, 0, IB_NODE_SYSTEM_GUID_F) == 0x05060708090a0b0cull);
}
#else

TEST(test_not_built)
{
    assert_null(probe_find("ibnetdisc", NULL));
}
#endif
