/* A node's delivering against a model of the scheduler: whatever gets lost, refused or forgotten on the way,
 * in the end the scheduler holds what the node has. Time, munge, the relay and the file in which a report is
 * kept over a restart are played here. */
#include "test/unit/deliver_world.h"

TEST_WITH(test_orders, open_node, close_node)
{
    deliver_first("");
    reply_orders(RELAY_SCAN, held_digest);
    assert_int_equal(n_looks, 1);
    assert_non_null(orders.fn); /* the next question is open */
    assert_int_equal(orders.known, held_digest);
    for (int i = 0; i < 100 && orders.fn != NULL; i++)
        reply_orders("", held_digest); /* at once and without any reason */
    assert_null(orders.fn);            /* no tight loop */
    assert_true(let_time_pass());
    assert_non_null(orders.fn);
    disconnect();
    assert_true(let_time_pass());
    assert_null(orders.fn);
    deliver_connected(node, true);
    assert_non_null(orders.fn);
}

TEST_WITH(test_refused, open_node, close_node)
{
    deliver_connected(node, true);
    report(1, false);
    reply_delivery(PMIXFAB_ERR_PERM, "uid 1000 may\nnot", 0);
    assert_true(status().refused);
    assert_null(strchr(status().reason, '\n'));
    assert_int_equal(last_code, PMIXFAB_ERR_PERM);
    reply_orders("", 77); /* it holds another one: no reason to try */
    assert_null(delivery.fn);
    report(2, false); /* a change is one */
    assert_non_null(delivery.fn);
    reply_status(&delivery, PMIX_ERR_NOT_FOUND); /* an old fabricd */
    assert_true(status().refused);
    agree_in_time(); /* minutes later */
    assert_false(status().refused);
}

TEST_WITH(test_pauses_grow, open_node, close_node)
{
    int64_t sum[2] = {0, 0};
    deliver_connected(node, true);
    report(1, false);
    for (int i = 0; i < 40; i++) {
        if (i % 2 == 0)
            reply_delivery(PMIXFAB_ERR_BUSY, "busy", 0);
        else
            reply_status(&delivery, PMIX_ERR_TIMEOUT);
        int64_t pause = (timers[0].ms >= 0 ? timers[0].ms : timers[1].ms) - now;
        assert_true(pause >= 100 && pause <= 45000);
        sum[i / 20] += pause;
        assert_true(let_time_pass());
    }
    assert_true(sum[1] > sum[0]);
    munge_status = EMUNGE_SOCKET;
    reply_status(&delivery, PMIX_ERR_TIMEOUT);
    assert_true(let_time_pass());
    assert_null(delivery.fn);
    assert_non_null(strstr(status().reason, "munged"));
    munge_status = EMUNGE_SUCCESS;
    agree_in_time();
}

/* Two nodes of one name: each puts its report over the other's, ever more slowly. */
TEST_WITH(test_two_of_one_name, open_node, close_node)
{
    deliver_connected(node, true);
    report(1, false);
    const int64_t start = now;
    for (int deliveries = 0; deliveries < 20;) {
        if (delivery.fn != NULL) {
            reply_delivery(PMIXFAB_OK, "", status().digest);
            deliveries++;
            if (orders.fn != NULL && orders.known != status().digest)
                reply_orders("", status().digest);
        } else if (orders.fn != NULL && orders.known != 4711) {
            reply_orders("", 4711);
        } else {
            assert_true(let_time_pass());
        }
    }
    assert_true(now - start > 60000);
}

TEST_GROUP(say_little, NULL)
