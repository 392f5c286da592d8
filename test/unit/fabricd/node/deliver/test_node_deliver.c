/* A node's delivering against a model of the scheduler: whatever gets lost, refused or forgotten on the way,
 * in the end the scheduler holds what the node has. Time, munge, the relay and the file in which a report is
 * kept over a restart are played here. */
#include "test/unit/deliver_world.h"

TEST_WITH(test_whole_and_changes, open_node, close_node)
{
    report(1, false);
    assert_int_equal(last_code, PMIXFAB_ERR_UNREACH); /* whoever waits is told */
    assert_null(delivery.fn);
    deliver_connected(node, true);
    assert_non_null(orders.fn);
    agree_in_time();
    assert_int_equal(last_code, PMIXFAB_OK);
    report(2, false);
    take_and_agree();
    assert_int_equal(n_whole, 1);
    assert_int_equal(n_changes, 1);
    report(2, false); /* nothing new */
    assert_null(delivery.fn);
    assert_int_equal(n_done, 4);
    report(2, true); /* nothing new, and wanted all the same */
    take_delivery(false);
    assert_int_equal(n_whole, 2);
    assert_int_equal(n_done, 5);
}

TEST_WITH(test_forgotten, open_node, close_node)
{
    deliver_first("");
    forget();
    report(2, false); /* as a change, of what is there no more */
    take_delivery(false);
    assert_non_null(delivery.fn); /* at once */
    take_and_agree();
    forget();
    reply_orders("", 0); /* nothing has changed here: the scheduler says what it holds */
    agree_in_time();
}

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

/* One answer can say both: scan again, and that nothing is held. The scan may come to nothing. */
TEST_WITH(test_order_after_forgetting, open_node, close_node)
{
    deliver_first("");
    forget();
    reply_orders(RELAY_SCAN, held_digest);
    assert_int_equal(n_looks, 1);
    for (int i = 0; i < 3 && !agreed(); i++)
        if (delivery.fn != NULL)
            take_delivery(false);
        else
            assert_true(let_time_pass());
    assert_true(agreed());
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

/* What a probe said before stands also where the node was killed meanwhile, and where its run directory is
 * gone: then it is the scheduler that knows. */
TEST_WITH(test_restarted_with_a_failed_probe, open_node, close_node)
{
    for (int gone = 0; gone < 2; gone++) {
        deliver_first("rc");
        assert_string_equal(ucx_held(), "rc");
        kill_node();
        if (gone)
            remove_file();
        start_node();
        report_of(2, NULL, false);
        deliver_connected(node, true);
        agree_in_time();
        assert_string_equal(ucx_held(), "rc");
        assert_int_equal(held_failed, UCX);
        report_of(2, NULL, false); /* nothing new */
        assert_null(delivery.fn);
        report_of(3, NULL, false);
        take_delivery(false);
        assert_string_equal(ucx_held(), "rc");
        report_of(3, "", false); /* it works again, and has nothing: that is news */
        take_and_agree();
        assert_string_equal(ucx_held(), "");
        assert_int_equal(held_failed, 0);
        report_of(3, "rc", false);
        take_delivery(false);
        disconnect();
    }
}

/* What changed, and nothing at all, can be told after a restart too. */
TEST_WITH(test_restarted, open_node, close_node)
{
    deliver_first("");
    for (unsigned firmware = 1; firmware < 3; firmware++) {
        restart_node();
        uint32_t unknown;
        assert_true(fab_report_equal(deliver_current(node, &unknown), &acked));
        assert_int_equal(status().digest, 0); /* but it is not delivered before there was a scan */
        deliver_connected(node, true);
        reply_orders("", held_digest);
        assert_null(delivery.fn);
        report(firmware, false);
        if (firmware == 2)
            take_delivery(false);
        assert_null(delivery.fn);
        assert_true(agreed());
    }
    assert_int_equal(n_whole, 1);
    assert_int_equal(n_changes, 1);
}

/* The scheduler keeps in memory whose probes fail: it is told again. */
TEST_WITH(test_a_failed_probe_is_told_again, open_node, close_node)
{
    deliver_first("rc");
    report_of(1, NULL, false);
    take_delivery(false);
    assert_int_equal(held_failed, UCX);
    disconnect();
    held_failed = 0;
    deliver_connected(node, true);
    assert_true(let_time_pass());
    take_delivery(false);
    assert_int_equal(held_failed, UCX);
    assert_true(agreed());
    restart_and_connect();
    held_failed = 0;
    report_of(1, NULL, false);
    take_delivery(false);
    assert_int_equal(held_failed, UCX);
    report_of(1, "rc", false); /* the scheduler takes it, and the node is killed before it hears that */
    take_delivery(true);
    assert_int_equal(held_failed, 0);
    report_of(1, NULL, false);
    restart_and_connect();
    held_failed = UCX;
    report_of(1, "rc", false);
    take_delivery(false);
    assert_int_equal(held_failed, 0);
}

/* The loop goes on meanwhile, and so does the rest of the node. */
TEST_WITH(test_munge_hangs, open_node, close_node)
{
    deliver_connected(node, true);
    munge_hangs = true;
    report(1, false);
    report(2, false);
    reply_orders(RELAY_SCAN, 0);
    assert_int_equal(n_looks, 1);
    assert_true(status().under_way);
    assert_null(delivery.fn);
    munge_hangs = false;
    let_munge_answer();
    take_delivery(true); /* that was the first one */
    agree_in_time();
    munge_hangs = true;
    report(3, false);
    munge_status = EMUNGE_TIMEOUT;
    munge_hangs = false;
    let_munge_answer();
    assert_non_null(strstr(status().reason, "munged"));
    munge_hangs = true;
    assert_true(let_time_pass());
    kill_node(); /* with a credential that is being made */
    start_node();
}

TEST_GROUP(say_little, NULL)
