/* Reading the words of a command for what a receipt does not keep: receipt/secret.c by its form and name, program.c by the program. */
#pragma once

#include "report/receipt/receipt.h"

/* Length of the secret in a word of a command; 0: there is none, else *value is where it begins. length: of the word; whole: of the
 * argument that it begins, with blanks in quotes. starts: it stands where a program's name does. */
size_t hec_receipt_option_value(struct hec_receipt_reading *reading, const char *word, size_t length, size_t whole,
                                bool starts, const char **value);
/* The same of what text hands to a program that reads a password. */
size_t hec_receipt_given_value(const char *text, const char **value);
