/* The terminal, through ncurses: draws a sheet, gives keys, and is put back however it ends. */
#pragma once

#include "base/error.h"
#include "top/sheet.h"

/* HEC_ERR_UNSUPPORTED with a sentence where standard input and output are no terminal that can be drawn on. */
int hec_screen_open(bool color, struct hec_why *why);
void hec_screen_close(void); /* nothing where it is not open */
void hec_screen_size(int *rows, int *columns);
void hec_screen_draw(const struct hec_sheet *sheet);
/* A character, an enum hec_top_key, or -1: none waits. */
int hec_screen_key(void);
/* The window has another size. */
void hec_screen_resized(void);
/* Gives the terminal back for as long as the process is stopped, then draws it anew. */
void hec_screen_stop(void);
/* The process goes on after a stop that it was not asked about: the terminal may be in any state. */
void hec_screen_again(void);
