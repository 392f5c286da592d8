/* A node and a scheduler with whatever can go wrong between them, at random: in the end they agree. */
#include "test/unit/deliver_world.h"

TEST_WITH(test_random, open_node, close_node)
{
    srand(815);
    bool connected = false;
    for (int i = 0; i < 200000; i++) {
        static const char *const ucx[] = {"", "rc", "ud", NULL};
        switch (rand() % 12) {
        case 0:
            connected = !connected;
            if (!connected && delivery.fn != NULL) /* the relay answers what was under way */
                take_delivery(true);
            if (!connected && orders.fn != NULL)
                reply_status(&orders, PMIX_ERR_UNREACH);
            deliver_connected(node, connected);
            break;
        case 1:
            report_of((unsigned)rand() % 5, ucx[rand() % 4], rand() % 4 == 0);
            break;
        case 2:
            if (rand() % 5 == 0)
                forget();
            break;
        case 3:
            if (delivery.fn != NULL)
                reply_delivery(PMIXFAB_ERR_BUSY, "busy", held_digest);
            break;
        case 4:
            if (delivery.fn != NULL)
                take_delivery(true);
            break;
        case 5:
            if (delivery.fn != NULL && rand() % 4 == 0)
                reply_delivery(PMIXFAB_ERR_PERM, "no", held_digest);
            break;
        case 6:
            if (orders.fn != NULL)
                reply_orders(rand() % 3 == 0 ? RELAY_SCAN : "", held_digest);
            break;
        case 7:
            munge_status = rand() % 3 == 0 ? EMUNGE_SOCKET : EMUNGE_SUCCESS;
            break;
        case 8:
            let_time_pass();
            break;
        case 10:
            file_cannot = rand() % 2 == 0;
            if (rand() % 3 == 0)
                munge_hangs = !munge_hangs;
            let_munge_answer();
            break;
        case 11:
            if (rand() % 4 != 0)
                break;
            if (delivery.fn != NULL && rand() % 2)
                take_delivery(true);
            kill_node();
            if (rand() % 3 == 0)
                remove_file();
            start_node();
            connected = false;
            break;
        default:
            if (delivery.fn != NULL)
                take_delivery(false);
        }
        if (i % 500 != 499 || status().digest == 0)
            continue;
        /* From here on all goes well: soon both agree. */
        munge_status = EMUNGE_SUCCESS;
        munge_hangs = false;
        let_munge_answer();
        deliver_connected(node, connected = true);
        for (int k = 0; k < 20 && !agreed(); k++) {
            if (delivery.fn != NULL)
                take_delivery(false);
            else if (orders.fn != NULL && orders.known != held_digest)
                reply_orders("", held_digest);
            else
                let_time_pass();
        }
        assert_true(agreed());
        uint32_t unknown;
        const struct fab_report *current = deliver_current(node, &unknown);
        assert_true(fab_report_equal(&acked, current) || unknown == UCX);
    }
    assert_true(n_changes > 100 && n_whole > 100);
}

TEST_GROUP(say_little, NULL)
