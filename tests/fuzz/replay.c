/* Runs a fuzz target on every file of a folder: the corpus as a plain test, with any compiler. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return -1;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    uint8_t *data = size > 0 ? malloc((size_t)size) : NULL;
    int err = size < 0 || (size > 0 && (!data || fread(data, 1, (size_t)size, file) != (size_t)size)) ? -1 : 0;
    fclose(file);
    if (err == 0)
        LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return err;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    DIR *folder = opendir(argv[1]);
    if (!folder) {
        perror(argv[1]);
        return 1;
    }
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        printf("%s\n", path);
        fflush(stdout); /* the last line names the input that crashed */
        if (replay(path)) {
            perror(path);
            closedir(folder);
            return 1;
        }
        count++;
    }
    closedir(folder);
    if (count == 0)
        fprintf(stderr, "%s: no input\n", argv[1]);
    return count == 0;
}
