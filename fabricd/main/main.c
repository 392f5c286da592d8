#include "fabricd/scheduler/scheduler.h"

int main(int argc, char **argv)
{
    return fabricd_main(argc, argv);
}
