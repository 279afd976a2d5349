/* The version of a libcupti, asked in a process of its own. */
#ifndef HEC_CLI_CUPTI_VERSION_H
#define HEC_CLI_CUPTI_VERSION_H

/* cuptiGetVersion of the library at path; 0: it cannot be loaded, is none, died, or did not answer within 10 s. */
unsigned hec_cupti_version(const char *path);

#endif
