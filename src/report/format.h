/* Inside src/report: numbers and foreign text for people. Every function writes a NUL-terminated string into text and
 * returns text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define HEC_FORMAT_SIZE 96

/* Text from outside (a command, a process name, a device's name): control characters and what is no UTF-8 become '?',
 * and everything beyond ASCII where utf8 is false. */
char *hec_format_clean(char *text, size_t size, const char *from, bool utf8);

/* "11.63 kJ", with `digits` significant digits and an SI prefix; "unknown" for NAN. */
char *hec_format_si(char text[HEC_FORMAT_SIZE], double value, int digits, const char *unit);
/* "11.63 kJ ± 0.06 kJ": no digit finer than the bound (two digits of a bound that begins with 1). */
char *hec_format_bounded(char text[HEC_FORMAT_SIZE], double value, double bound, const char *unit, bool utf8);
/* "12.3 s", "4 min 5 s", "3 h 20 min" */
char *hec_format_seconds(char text[HEC_FORMAT_SIZE], double seconds);
/* "4.19 GB": powers of 1000, as bytes on a bus are counted */
char *hec_format_bytes(char text[HEC_FORMAT_SIZE], double bytes, const char *suffix);
/* "88 %", "0.4 %"; "-" for NAN */
char *hec_format_share(char text[HEC_FORMAT_SIZE], double share);
/* "300000", "0.25": digits that can be pasted */
char *hec_format_count(char text[HEC_FORMAT_SIZE], double count);
/* Of the report that this thread makes: devices that share a count from 0. Those of a vendor, unless it has more of one than a block
 * of indices (HEC_VENDOR_DEVICES_MAX) holds, as jobs of several hosts and imports may: then all. */
void hec_format_count_devices(bool by_vendor);
int hec_format_device_block(void);
/* "GPU 3", "AMD GPU 0", from hec_device.index: users count the devices of each vendor from 0 */
char *hec_format_gpu(char text[HEC_FORMAT_SIZE], int index);
/* "$1.24", "$0.00042": two decimals or two significant digits */
char *hec_format_dollars(char text[HEC_FORMAT_SIZE], double dollars);
