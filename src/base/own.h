/* Is what hec reads and believes, and where it keeps that, safe from other users? Nobody but this user and root owns it or may write to it,
 * nor to a folder above it, where a sticky bit will do, nor to a link that leads there. A group of the owner's own (of the same number) is
 * no other user, but whom a list of rights names is. */
#pragma once

#include "base/error.h"

#include <sys/types.h>

/* also: another user who may own it; geteuid(): none. What of the folder does not exist yet is not looked at. HEC_ERR_PERMISSION with a
 * sentence that names what others may change. */
int hec_own_folder(const char *folder, uid_t also, struct hec_why *why);
/* The folder that a file is in. */
int hec_own_place(const char *path, struct hec_why *why);
/* An open file. */
int hec_own_file(int fd, const char *path, uid_t also, struct hec_why *why);
