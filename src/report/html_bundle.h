/* Inside src/report: the front end, as web/dist has it. */
#ifndef HEC_REPORT_HTML_BUNDLE_H
#define HEC_REPORT_HTML_BUNDLE_H

#include <stddef.h>

struct hec_html_part {
    const char *text;
    size_t length;
};
struct hec_html_part hec_html_script(void);
struct hec_html_part hec_html_style(void);

#endif
