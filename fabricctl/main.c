/* main.c - fabricctl, the operator's command. All other code is in a library that tests can link. */
#include "fabricctl/core/ctl.h"

int main(int argc, char **argv)
{
    return ctl_main(argc, argv);
}
