/* "Did you mean ...?" */
#include "cli/cli.h"

#include <string.h>

#define LENGTH_MAX 31 /* longer words are no mistyped ones of ours */

static int least(int a, int b) {
    return a < b ? a : b;
}

/* How many letters were left out, put in, changed or swapped with the next (optimal string alignment). */
static int distance(const char *a, const char *b) {
    int rows[3][LENGTH_MAX + 1], *before = rows[0], *above = rows[1], *row = rows[2];
    int width = (int)strlen(b);
    for (int j = 0; j <= width; j++)
        above[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        row[0] = i;
        for (int j = 1; j <= width; j++) {
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        int *next = before;
        before = above;
        above = row;
        row = next;
    }
    return above[width];
}

const char *hec_nearest(const char *word, const char *const *list) {
    size_t length = strlen(word);
    const char *found = NULL;
    /* one letter of a short word may be wrong, two of a longer one: "rum" is run, and "cp" is nothing of ours */
    int most = length < 3 ? 0 : length < 5 ? 1 : 2;
    if (length > LENGTH_MAX)
        return NULL;
    for (; *list; list++) {
        if (strlen(*list) > LENGTH_MAX)
            continue;
        bool begun = length >= 3 && strncmp(word, *list, length) == 0;
        int off = begun ? 0 : distance(word, *list);
        if (off > most || (found && off == most))
            continue;
        found = *list;
        most = off;
    }
    return found;
}
