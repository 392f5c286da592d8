#include "fabricd/server/attributes.h"

#include <pmix.h>
#include <pmix_server.h>

#include "fabricd/base/log.h"

/* Names of the standard only, since the library looks each up in its dictionary. */
static char *const of_register[] = {"PMIX_FABRIC_PLANE",
                                    "PMIX_FABRIC_VENDOR",
                                    "PMIX_FABRIC_IDENTIFIER",
                                    "PMIX_FABRIC_INDEX",
                                    "PMIX_FABRIC_SWITCH",
                                    "PMIX_FABRIC_NUM_DEVICES",
                                    "PMIX_FABRIC_GROUPS",
                                    "PMIX_FABRIC_DIMS",
                                    "PMIX_FABRIC_SHAPE",
                                    "PMIX_FABRIC_SHAPE_STRING",
                                    "PMIX_FABRIC_DEVICES",
                                    "PMIX_HOSTNAME", /* this and the following ones select devices */
                                    "PMIX_NODEID",
                                    "PMIX_DEVICE_ID",
                                    "PMIX_FABRIC_DEVICE_NAME",
                                    "PMIX_FABRIC_DEVICE_INDEX",
                                    "PMIX_TIMEOUT",
                                    "PMIX_QUERY_REFRESH_CACHE",
                                    "PMIX_GET_REFRESH_CACHE",
                                    NULL};

static char *const of_update[] = {"PMIX_FABRIC_INDEX", NULL};

static char *const of_query[] = {"PMIX_FABRIC_PLANE",
                                 "PMIX_FABRIC_SWITCH",
                                 "PMIX_FABRIC_VENDOR",
                                 "PMIX_FABRIC_IDENTIFIER",
                                 "PMIX_FABRIC_INDEX",
                                 "PMIX_FABRIC_NUM_DEVICES",
                                 "PMIX_FABRIC_GROUPS",
                                 "PMIX_FABRIC_DIMS",
                                 "PMIX_FABRIC_SHAPE",
                                 "PMIX_FABRIC_SHAPE_STRING",
                                 "PMIX_FABRIC_DEVICES",
                                 "PMIX_FABRIC_COORDINATES",
                                 "PMIX_FABRIC_DEVICE",
                                 "PMIX_FABRIC_DEVICE_INDEX",
                                 "PMIX_FABRIC_DEVICE_NAME",
                                 "PMIX_FABRIC_DEVICE_VENDOR",
                                 "PMIX_FABRIC_DEVICE_VENDORID",
                                 "PMIX_FABRIC_DEVICE_BUS_TYPE",
                                 "PMIX_FABRIC_DEVICE_PCI_DEVID",
                                 "PMIX_FABRIC_DEVICE_DRIVER",
                                 "PMIX_FABRIC_DEVICE_FIRMWARE",
                                 "PMIX_FABRIC_DEVICE_ADDRESS",
                                 "PMIX_FABRIC_DEVICE_MTU",
                                 "PMIX_FABRIC_DEVICE_SPEED",
                                 "PMIX_FABRIC_DEVICE_STATE",
                                 "PMIX_FABRIC_DEVICE_TYPE",
                                 "PMIX_DEVICE_ID",
                                 "PMIX_HOSTNAME",
                                 "PMIX_NODEID",
                                 "PMIX_NODE_INFO", /* this and the following ones are qualifiers */
                                 "PMIX_TIMEOUT",
                                 "PMIX_QUERY_REFRESH_CACHE",
                                 "PMIX_GET_REFRESH_CACHE",
                                 NULL};

static const struct {
    char *function;
    char *const *attributes;
} supported[] = {
    {"PMIx_Fabric_register", of_register}, {"PMIx_Fabric_register_nb", of_register},
    {"PMIx_Fabric_update", of_update},     {"PMIx_Fabric_update_nb", of_update},
    {"PMIx_Query_info", of_query},         {"PMIx_Query_info_nb", of_query},
};

void attributes_register(void)
{
    for (size_t i = 0; i < sizeof(supported) / sizeof(supported[0]); i++) {
        pmix_status_t rc = PMIx_Register_attributes(supported[i].function, (char **)supported[i].attributes);
        if (rc != PMIX_SUCCESS)
            log_debug("pmix: attributes of %s: %s", supported[i].function, PMIx_Error_string(rc));
    }
}
