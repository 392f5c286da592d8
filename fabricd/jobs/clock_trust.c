#include "fabricd/jobs/clock_trust.h"

void clock_doubt(struct clock_trust *trust, int64_t boot)
{
    trust->jumped = true;
    trust->jump_at = boot;
}

bool clock_trusted(struct clock_trust *trust, int64_t wall, int64_t boot, int64_t latest)
{
    int64_t offset = wall - boot, jump = offset - trust->offset;
    if (trust->read && (jump > CLOCK_JUMP || jump < -CLOCK_JUMP))
        clock_doubt(trust, boot);
    trust->read = true;
    trust->offset = offset;
    return (!trust->jumped || boot - trust->jump_at >= CLOCK_TRUST) && latest <= wall + CLOCK_JUMP;
}
