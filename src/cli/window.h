/* `hec __window`, hidden: records and analyses some seconds of a job for the node's agent (jobs/window.h). */
#ifndef HEC_CLI_WINDOW_H
#define HEC_CLI_WINDOW_H

int hec_window_main(void);

#endif
