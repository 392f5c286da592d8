#include "fabricd/jobs/clock_trust.h"

void clock_doubt(struct clock_watch *watch, int64_t boot)
{
    watch->jumped = true;
    watch->jump_at = boot;
}

bool clock_trusted(struct clock_watch *watch, int64_t wall, int64_t boot, int64_t latest)
{
    int64_t offset = wall - boot, jump = offset - watch->offset;
    if (watch->looked && (jump > CLOCK_JUMP || jump < -CLOCK_JUMP))
        clock_doubt(watch, boot);
    watch->looked = true;
    watch->offset = offset;
    return (!watch->jumped || boot - watch->jump_at >= CLOCK_TRUST) && latest <= wall + CLOCK_JUMP;
}
