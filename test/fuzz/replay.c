/* replay.c - run a fuzzer's function over every file of the folders named, as an ordinary test. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return -1;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    int ok = data != NULL && size >= 0 && fread(data, 1, (size_t)size, f) == (size_t)size;
    fclose(f);
    if (ok)
        LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return ok ? 0 : -1;
}

int main(int argc, char **argv)
{
    unsigned n = 0;
    for (int i = 1; i < argc; i++) {
        struct dirent **names;
        int count = scandir(argv[i], &names, NULL, alphasort);
        for (int k = 0; k < count; k++) {
            char path[4096];
            snprintf(path, sizeof(path), "%s/%s", argv[i], names[k]->d_name);
            if (names[k]->d_name[0] != '.') {
                if (replay_file(path) != 0) {
                    fprintf(stderr, "%s: not read\n", path);
                    return 1;
                }
                n++;
            }
            free(names[k]);
        }
        if (count >= 0)
            free(names);
    }
    printf("%u inputs\n", n);
    return n > 0 ? 0 : 1; /* an empty corpus tests nothing */
}
