/* host_module.h - what this host's PMIx server answers. */
#ifndef FABRICD_HOST_HOST_MODULE_H
#define FABRICD_HOST_HOST_MODULE_H

#include <pmix_server.h>

extern pmix_server_module_t host_module;

#endif
