/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over files, without libFuzzer: so that `make test` replays every corpus and
 * every input that ever failed with gcc alone.
 *
 * The arguments are files or folders (one level). A target that finds a fault aborts; reaching
 * the end is success. No input at all is run once with zero bytes, which every target must stand.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *path)
{
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    exit(2);
}

/* The input is copied to memory of its exact size, so that ASan sees a read past its end. */
static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        fail(path);
    long size = ftell(file);
    rewind(file);
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    if (size < 0 || !data || fread(data, 1, (size_t)size, file) != (size_t)size)
        fail(path);
    fclose(file);
    printf("%s\n", path);
    fflush(stdout);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
}

static int replay_folder(const char *path)
{
    struct dirent **names;
    int count = scandir(path, &names, NULL, alphasort);
    int replayed = 0;
    for (int i = 0; i < count; i++) {
        char file[4096];
        snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.') {
            replay_file(file);
            replayed++;
        }
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    else if (errno == ENOTDIR) {
        replay_file(path);
        replayed++;
    } else if (errno != ENOENT) {
        fail(path);
    }
    return replayed;
}

int main(int argc, char **argv)
{
    int replayed = 0;
    for (int i = 1; i < argc; i++)
        replayed += replay_folder(argv[i]);
    if (!replayed)
        LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    printf("%d inputs replayed\n", replayed);
    return 0;
}
