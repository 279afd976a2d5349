/* What a command line says of what it does, short enough for a label: `train.py --lr 3`, not `python`. Pure; any bytes will do.
 * Arguments are words with a NUL behind each, as in /proc/PID/cmdline; the last one ends at `end`. */
#pragma once

#include <stdbool.h>

#define HEC_COMMAND_SIZE 64

/* The program (`name`, as the kernel has it), of Python the script or module; then the words that tell it apart from others like it:
 * options, numbers, short names, of paths the last part. What may be a secret, or is longer, is left out. */
void hec_command_short(const char *arguments, const char *end, const char *name, char out[HEC_COMMAND_SIZE]);

/* It says nothing of its own: a process that Python's multiprocessing started, or one that wrote a title over its words
 * (`VLLM::EngineCore`). Its parent's does. */
bool hec_command_is_worker(const char *arguments, const char *end);
