/* The bytes of a trace: a plain, gzip or zstd file, read forward once. */
#pragma once

#include "base/error.h"

#include <stddef.h>

struct hec_import_input;

/* HEC_ERR_NOTFOUND, HEC_ERR_PERMISSION, HEC_ERR_IO, HEC_ERR_USAGE for what is no regular file or pipe. */
int hec_import_input_open(const char *path, struct hec_import_input **out, struct hec_why *why);

/* Up to `size` bytes; 0 at the end. HEC_ERR_IO, HEC_ERR_CORRUPT for damaged compression, HEC_ERR_LIMIT for a file that
 * grows without measure when unpacked. */
long hec_import_input_read(struct hec_import_input *input, void *bytes, size_t size, struct hec_why *why);

/* How much of the file has been read, 0..1; 0 where its size is not known. */
double hec_import_input_share(const struct hec_import_input *input);
const char *hec_import_input_path(const struct hec_import_input *input);
void hec_import_input_close(struct hec_import_input *input);
