#include "report/html_bundle.h"

#include <stdint.h>

/* The assembler puts the files into the program as they are: they cost memory when they are read, and no time before. */
#define PART(symbol, file)                                                                                             \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"" HEC_WEB_DIST "/" file "\"\n" #symbol                      \
            "_end:\n.byte 0\n.global " #symbol "\n.hidden " #symbol "\n.global " #symbol "_end\n.hidden " #symbol      \
            "_end\n.popsection\n");                                                                                    \
    extern __attribute__((visibility("hidden"))) const char symbol[], symbol##_end[]

PART(hec_html_js, "page.js");
PART(hec_html_css, "page.css");

struct hec_html_part hec_html_script(void) {
    return (struct hec_html_part){hec_html_js, (uintptr_t)hec_html_js_end - (uintptr_t)hec_html_js};
}

struct hec_html_part hec_html_style(void) {
    return (struct hec_html_part){hec_html_css, (uintptr_t)hec_html_css_end - (uintptr_t)hec_html_css};
}
