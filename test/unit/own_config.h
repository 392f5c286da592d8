/* own_config.h - the settings as they are where nobody wrote any, of all tests of a program. */
#ifndef FAB_TEST_OWN_CONFIG_H
#define FAB_TEST_OWN_CONFIG_H

#include "fabricd/config/config.h"
#include "test/unit/test.h"

static struct config config;

FIXTURE(own_config_setup)
{
    config_init(&config);
    return 0;
}

FIXTURE(own_config_teardown)
{
    config_destroy(&config);
    return 0;
}

#endif
