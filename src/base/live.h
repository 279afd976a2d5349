/* Is the process that works on a file alive? It holds a lock on one byte of the file, which the kernel drops with it.
 * The byte is far beyond those that SQLite locks, and the lock is of the open file and not of the process: SQLite's
 * own locks, and closing another descriptor of the file, leave it alone. */
#pragma once

#include <stdbool.h>

/* Until fd, which is open for writing, is closed. false: this file system has no locks, or another holds it. */
bool hec_live_hold(int fd);

/* Does somebody else hold it? Any descriptor of the file will do. */
bool hec_live_held(int fd);
