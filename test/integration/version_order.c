/* version_order.c - preloaded into a program: the library calls itself the version in LIBRARY_VERSION. */
#include <stdio.h>
#include <stdlib.h>

const char *PMIx_Get_version(void);

const char *PMIx_Get_version(void)
{
    static char text[64];
    const char *version = getenv("LIBRARY_VERSION");
    snprintf(text, sizeof(text), "OpenPMIx %s, repo rev: none", version == NULL ? "9.9.9" : version);
    return text;
}
