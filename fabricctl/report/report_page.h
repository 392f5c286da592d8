/*
 * report_page.h - interface of the report, a page about a fabric: its command, and the built page.
 *
 * docs/design/report.md has the form of the data.
 */
#ifndef FABRICCTL_REPORT_REPORT_PAGE_H
#define FABRICCTL_REPORT_REPORT_PAGE_H

#include <jansson.h>

#include "fabricctl/core/ctl.h"

/* The summary in --help. */
#ifdef FABRICCTL_NO_REPORT
#define REPORT_SUMMARY "not in this build: write a page for a browser"
#else
#define REPORT_SUMMARY "write a page for a browser: drawing, costs, findings, changes"
#endif

enum ctl_exit ctl_report(const struct ctl *ctl);

/* The page as it is built (cmake/embed_page.cmake): the parts before and after the data. */
extern const unsigned char report_page_head[], report_page_tail[];
extern const size_t report_page_head_size, report_page_tail_size;

#endif
