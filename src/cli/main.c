/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program: picks the command, and says what commands there are.
 */
#include <stdarg.h>
#include <string.h>

#include "cli/cli.h"

static const struct command commands[] = {
    {"serve", "run a broker", serve_run},
    {"topics", "create, list, describe, alter and delete topics", topics_run},
    {"configs", "read and change the configuration of topics and brokers", configs_run},
    {"groups", "list and describe consumer groups, move and delete their offsets", groups_run},
    {"cluster", "show the cluster: brokers, partitions, what is not well, versions", cluster_run},
    {"leaders", "show who leads which partition, elect preferred leaders", leaders_run},
    {"reassign", "move partitions to other brokers, and show how far that is", reassign_run},
    {"produce", "send lines as records", produce_run},
    {"consume", "print the records of a topic", consume_run},
    {"dump", "show and check the files of a log directory", dump_run},
};

static void print_help(FILE *out)
{
    fprintf(out, "usage: strandline COMMAND [ARGUMENT...]\n"
                 "\n"
                 "A replicated log broker that speaks the Kafka protocol.\n"
                 "\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\n"
                 "'strandline COMMAND --help' explains a command; 'strandline --version' prints "
                 "the version.\n");
}

int cli_fail(const char *command, const char *fmt, ...)
{
    va_list args;

    fprintf(stderr, "strandline %s: ", command);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    return 1;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "--help";

    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_help(argc > 1 ? stdout : stderr);
        return argc > 1 ? 0 : EXIT_USAGE;
    }
    if (strcmp(name, "--version") == 0) {
        printf("strandline %s\n", STRANDLINE_VERSION);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "strandline: there is no command '%s'; 'strandline --help' lists them\n", name);
    return EXIT_USAGE;
}
