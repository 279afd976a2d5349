#include "report/html.h"

#include "base/sha256.h"
#include "report/format.h"

#include <stdio.h>
#include <string.h>

/* The front end, as web/dist has it. */

struct hec_html_part {
    const char *text;
    size_t length;
};

/* The assembler puts the files into the program as they are: they cost memory when they are read, and no time before. */
#define PART(symbol, file)                                                                                             \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"" HEC_WEB_DIST "/" file "\"\n" #symbol                      \
            "_end:\n.byte 0\n.global " #symbol "\n.hidden " #symbol "\n.global " #symbol "_end\n.hidden " #symbol      \
            "_end\n.popsection\n");                                                                                    \
    extern __attribute__((visibility("hidden"))) const char symbol[], symbol##_end[]

PART(hec_html_js, "page.js");
PART(hec_html_css, "page.css");

static struct hec_html_part html_script(void) {
    return (struct hec_html_part){hec_html_js, (uintptr_t)hec_html_js_end - (uintptr_t)hec_html_js};
}

static struct hec_html_part html_style(void) {
    return (struct hec_html_part){hec_html_css, (uintptr_t)hec_html_css_end - (uintptr_t)hec_html_css};
}

/* ---- the policy ---- */

static char *base64(char *out, const unsigned char *bytes, size_t length) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *at = out;
    for (size_t i = 0; i < length; i += 3) {
        unsigned left = (unsigned)(length - i), three = (unsigned)bytes[i] << 16;
        three |= left > 1 ? (unsigned)bytes[i + 1] << 8 : 0;
        three |= left > 2 ? bytes[i + 2] : 0;
        *at++ = digits[three >> 18];
        *at++ = digits[three >> 12 & 63];
        *at++ = left > 1 ? digits[three >> 6 & 63] : '=';
        *at++ = left > 2 ? digits[three & 63] : '=';
    }
    *at = '\0';
    return out;
}

/* As a policy names it: 'sha256-...' without the quotes. */
static char *hash(char out[64], struct hec_html_part part) {
    char text[HEC_SHA256_TEXT];
    unsigned char bytes[32];
    hec_sha256(text, part.text, part.length);
    for (size_t i = 0; i < sizeof bytes; i++) {
        unsigned byte = 0;
        sscanf(text + 2 * i, "%2x", &byte);
        bytes[i] = (unsigned char)byte;
    }
    snprintf(out, 64, "sha256-");
    base64(out + strlen(out), bytes, sizeof bytes);
    return out;
}

char *hec_html_policy(char out[HEC_HTML_POLICY], bool live) {
    char script[64], style[64];
    snprintf(
        out, HEC_HTML_POLICY,
        "default-src 'none'; script-src '%s'; style-src '%s'; img-src data:%s; base-uri 'none'; form-action 'none'",
        hash(script, html_script()), hash(style, html_style()), live ? "; connect-src 'self'" : "");
    return out;
}

/* ---- text ---- */

static void put_escaped(struct hec_buf *out, const char *text) {
    for (; *text; text++) {
        size_t plain = strcspn(text, "<>&\"'");
        hec_buf_add(out, text, plain);
        text += plain;
        if (!*text)
            break;
        hec_buf_printf(out, "&#%d;", *text);
    }
}

/* In a string of JSON, where alone they stand, what could end the element or a line of a script. */
static int put_json(const char *data, size_t size, void *to) {
    struct hec_buf *out = to;
    for (size_t i = 0, plain = 0; i <= size; i++) {
        bool special = i < size && (data[i] == '<' || data[i] == '>' || data[i] == '&');
        if (!special && i < size)
            continue;
        hec_buf_add(out, data + plain, i - plain);
        plain = i + 1;
        if (special)
            hec_buf_printf(out, "\\u%04x", (unsigned)data[i]);
    }
    return hec_buf_error(out) ? -1 : 0;
}

/* ---- the page ---- */

/* JSON_ENSURE_ASCII: no character of it is anything but itself in any encoding. */
int hec_html_page(json_t *data, const char *title, const char *text, bool live, struct hec_buf *out) {
    struct hec_html_part script = html_script(), style = html_style();
    char policy[HEC_HTML_POLICY], clean[512];
    hec_buf_puts(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta http-equiv=\"Content-Security-Policy\" content=\"");
    put_escaped(out, hec_html_policy(policy, live));
    hec_buf_puts(out, "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n<title>");
    put_escaped(out, hec_format_clean(clean, sizeof clean, title, true));
    hec_buf_puts(out, "</title>\n<style>");
    hec_buf_add(out, style.text, style.length);
    hec_buf_puts(out, "</style>\n</head>\n<body>\n<div id=\"hec-root\"></div>\n<noscript><pre>");
    put_escaped(out, text);
    hec_buf_puts(out, "</pre></noscript>\n<script type=\"application/json\" id=\"hec-page\">");
    int failed =
        !data || json_dump_callback(data, put_json, out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(10));
    json_decref(data);
    hec_buf_puts(out, "</script>\n<script>");
    hec_buf_add(out, script.text, script.length);
    hec_buf_puts(out, "</script>\n</body>\n</html>\n");
    return hec_buf_error(out) ? hec_buf_error(out) : failed ? HEC_ERR_NOMEM : HEC_OK;
}

json_t *hec_html_data(const char *kind) {
    return json_pack("{s:s, s:s, s:s}", "schema", HEC_HTML_SCHEMA, "kind", kind, "hec_version", HEC_VERSION);
}

int hec_html_live(const char *hostname, struct hec_buf *out) {
    char title[512];
    snprintf(title, sizeof title, "%.400s - hec agent", hostname);
    return hec_html_page(hec_html_data("live"), title,
                         "This page needs JavaScript. The same figures are in /metrics and /live.json.", true, out);
}
