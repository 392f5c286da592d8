/* no_report.c - the command report of a fabricctl that is built without the page (FABRICD_REPORT=OFF). */
#include "fabricctl/core/ctl.h"
#include "fabricctl/report/report_page.h"

enum ctl_exit ctl_report(const struct ctl *ctl)
{
    (void)ctl;
    return ctl_error(
        "not written: this fabricctl was built without the report page (FABRICD_REPORT=OFF): build "
        "it with -DFABRICD_REPORT=ON, or use fabricctl status, check and changes");
}
