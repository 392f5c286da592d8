#include "fabricd/sources/manager.h"

enum manager_news manager_seen(struct manager *manager, const struct probe_manager *saw, int64_t now)
{
    const bool gone = manager_is_gone(manager);
    if (!saw->master) {
        if (manager->missed == 0)
            manager->missed_since = now;
        if (manager->now.guid == 0)
            manager->now.lid = saw->lid; /* the expected LID */
        manager->missed += !gone;
        return gone || !manager_is_gone(manager) ? MANAGER_AS_BEFORE : MANAGER_GONE;
    }
    const uint64_t before = manager->now.guid;
    manager->now = *saw;
    manager->missed = 0;
    if (before != saw->guid)
        manager->since = now;
    if (before == 0 || now - manager->since > MANAGER_USUAL)
        manager->usual = saw->guid;
    if (before == 0)
        return MANAGER_FIRST;
    return before != saw->guid ? MANAGER_ANOTHER : gone ? MANAGER_BACK : MANAGER_AS_BEFORE;
}
