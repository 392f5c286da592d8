#include "fabricd/clock.h"

bool clock_trusted(struct clock_watch *watch, int64_t wall, int64_t boot, int64_t latest)
{
    int64_t offset = wall - boot, jump = offset - watch->offset;
    if (watch->looked && (jump > CLOCK_JUMP || jump < -CLOCK_JUMP)) {
        watch->jumped = true;
        watch->jump = jump;
        watch->jump_at = boot;
    }
    watch->looked = true;
    watch->offset = offset;
    return (!watch->jumped || boot - watch->jump_at >= CLOCK_TRUST) && latest <= wall + CLOCK_JUMP;
}
