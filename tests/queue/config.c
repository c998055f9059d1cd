/* SPDX-License-Identifier: MIT */
/* config.c - the config file and its settings. */
#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/config/config.h"
#include "queue/config/split.h"
#include "queue/config/values.h"

#define PATH "/home/a/.config/gpudispatch/config"

static void parse(const char *text, struct gpq_config *c)
{
    struct gpq_error e = { 0 };
    if (gpq_config_parse(PATH, text, strlen(text), c, &e) < 0)
        T_FAIL("%s", e.text);
}

/* ---- What a file has ---- */

T_CASE(a_file_is_read)
{
    static const char text[] = "\xef\xbb\xbf# the night\r\n"
                               "\tdevices =  0,1 \r\n"
                               "notify = mail -s 'a # b' me = you\n"
                               "; another one\n"
                               "\n"
                               "[class whisper]   # speech\n"
                               "plugin=libwhisper.so\n"
                               "gpus = 0.5\n"
                               "[ needs\tbig ];\n"
                               "gpus = 2\n"
                               "[class qwen2.5:14b]\n"
                               "worker = ./llm --model 'my model'";
    struct gpq_config c;
    const char *value;
    enum gpq_origin origin;
    struct gpq_error e;
    parse(text, &c);
    T_EQ(c.n, 4);
    T_EQ(gpq_config_get(&c, GPQ_KEY_DEVICES, &value, &origin, &e), 0);
    T_TEXT(value, "0,1");
    T_EQ(origin, GPQ_ORIGIN_FILE);
    T_EQ(gpq_config_get(&c, GPQ_KEY_NOTIFY, &value, &origin, &e), 0);
    T_TEXT(value, "mail -s 'a # b' me = you");
    const struct gpq_section *s = gpq_config_section(&c, GPQ_SECTION_CLASS, "whisper");
    T_CHECK(s);
    T_EQ(s->line, 6);
    T_TEXT(gpq_section_get(s, GPQ_KEY_PLUGIN), "libwhisper.so");
    T_EQ(s->entry[GPQ_KEY_PLUGIN].line, 7);
    T_TEXT(gpq_section_get(s, GPQ_KEY_CLASS_GPUS), "0.5");
    T_TEXT(gpq_section_get(s, GPQ_KEY_BATCH), "1"); /* the default */
    T_CHECK(!gpq_section_get(s, GPQ_KEY_CLASS_MEMORY));
    s = gpq_config_section(&c, GPQ_SECTION_NEEDS, "big");
    T_CHECK(s);
    T_TEXT(gpq_section_get(s, GPQ_KEY_NEEDS_GPUS), "2");
    s = gpq_config_section(&c, GPQ_SECTION_CLASS, "qwen2.5:14b");
    T_CHECK(s);
    T_TEXT(gpq_section_get(s, GPQ_KEY_WORKER), "./llm --model 'my model'");
    T_CHECK(!gpq_config_section(&c, GPQ_SECTION_CLASS, "big"));
    gpq_config_free(&c);
}

/* ---- What is refused ---- */

T_CASE(each_fault_has_its_line)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        { "device = 0\n", ":1: 'device' is no key of the lines before the first section: did you "
                          "mean devices?" },
        { "\n\ngpus = 1\n", ":3: 'gpus' is no key of the lines before the first section; the "
                            "keys are devices, cpus, state-dir, allow-network-fs, env, shell, "
                            "notify, keep-age, keep-tasks, log-limit, ports" },
        { "[class a]\nplugin = x\nmax = 1\n",
          ":3: 'max' is no key of [class a]: did you mean max-workers or max-wait?" },
        { "[needs a]\nxyzzy = 1\n",
          ":2: 'xyzzy' is no key of [needs a]; the keys are gpus, memory, cpus, host-memory, "
          "compute, on, not-on, or" },
        { "devices = 0\n# x\ndevices = 1\n", ":3: devices is in line 1 already" },
        { "devices =\n", ":1: devices has no value" },
        { "devices = \t\r\n", ":1: devices has no value" },
        { "devices\n", ":1: 'devices': expected KEY = VALUE, [class NAME] or [needs NAME]" },
        { "= 3\n", ":1: '' is no key of the lines before the first section; the keys are devices, "
                   "cpus, state-dir, allow-network-fs, env, shell, notify, keep-age, keep-tasks, "
                   "log-limit, ports" },
        { "cpus = 0\n", ":1: cpus: '0': expected a number from 1 to 65536" },
        { "keep-age = 3 weeks\n",
          ":1: keep-age: '3 weeks': expected a duration such as 90, 1.5s, 5m or 1h30m" },
        { "log-limit = 40\n", ":1: log-limit: '40': a size below 1 MiB needs a unit, such as 40G, "
                              "or 40B for bytes" },
        { "env = all\n", ":1: env: 'all': expected whole or clean" },
        { "allow-network-fs = maybe\n", ":1: allow-network-fs: 'maybe': expected yes or no" },
        { "[class a]\nplugin = x\ngpus = 1  # one\n",
          ":3: gpus: '1  # one': expected a number of GPUs such as 2, or a part of one such as "
          "0.5" },
        { "[class a]\nworker = 'x\n",
          ":2: worker: has a quote that is left open, or ends with a backslash" },
        { "[class a]\n", ":1: [class a] has neither plugin nor worker, expected one of them" },
        { "\n[class a]\nplugin = x\nworker = y\n",
          ":2: [class a] has both plugin and worker, expected one of them" },
        { "[class a]\nplugin = x\n[class a]\n", ":3: [class a]: the section is in line 1 already" },
        { "[class command]\n",
          ":1: [class command]: this is the class of commands; choose another name" },
        { "[class]\n", ":1: [class ]: expected a name without blanks and quotes" },
        { "[class a b]\n", ":1: [class a b]: expected a name without blanks and quotes" },
        { "[class -a]\n", ":1: [class -a]: expected a name without blanks and quotes" },
        { "[class aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\n",
          ":1: [class aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]: the name "
          "has 64 bytes, the maximum is 63" },
        { "[model a]\n", ":1: [model]: expected [class NAME] or [needs NAME]" },
        { "[]\n", ":1: []: expected [class NAME] or [needs NAME]" },
        { "[class a\n", ":1: [class a: expected a ]" },
        { "[class a] x\n", ":1: 'x' follows the ] of a section" },
        { "[needs a]\nor = b\n", ":2: or: 'b' is no other [needs NAME] of the file" },
        { "[needs a]\nor = a\n", ":2: or: 'a' is no other [needs NAME] of the file" },
        { "[needs a]\nor = b b b b\n[needs b]\n", ":2: or has 4 names, the maximum is 3" },
        { "ab\xff\n", ":1: byte 3 of the line is not UTF-8" },
        { "\xc0\xaf\n", ":1: byte 1 of the line is not UTF-8" },
        { "\xed\xa0\x80\n", ":1: byte 1 of the line is not UTF-8" },
        { "\xf4\x90\x80\x80\n", ":1: byte 1 of the line is not UTF-8" },
        { "x = \xe2\x82\n", ":1: byte 5 of the line is not UTF-8" },
    };
    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        struct gpq_config c;
        struct gpq_error e = { 0 };
        T_EQ(gpq_config_parse(PATH, rows[i].text, strlen(rows[i].text), &c, &e), GPQ_EINVAL);
        T_CHECK(!strncmp(e.text, PATH, strlen(PATH)));
        T_TEXT(e.text + strlen(PATH), rows[i].error);
    }
}

T_CASE(a_byte_nul_is_refused)
{
    struct gpq_config c;
    struct gpq_error e;
    T_EQ(gpq_config_parse(PATH, "devices = 0\0,1\n", 15, &c, &e), GPQ_EINVAL);
    T_TEXT(e.text, PATH ":1: byte 12 of the line is NUL");
}

T_CASE(sections_are_bounded)
{
    static char text[1025 * 16];
    size_t n = 0;
    struct gpq_config c;
    struct gpq_error e;
    for (int i = 0; i < 1024; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "[needs n%d]\n", i);
    T_EQ(gpq_config_parse(PATH, text, n, &c, &e), GPQ_EINVAL);
    T_TEXT(e.text, PATH ":1024: more than 1024 sections");
}

/* ---- Origins ---- */

T_CASE(a_flag_comes_before_the_environment_and_the_file)
{
    struct gpq_config c;
    const char *value;
    char where[64];
    enum gpq_origin origin;
    struct gpq_error e;
    parse("\nstate-dir = /file\n", &c);
    T_EQ(unsetenv("GPUDISPATCH_STATE"), 0);
    T_EQ(gpq_config_get(&c, GPQ_KEY_STATE_DIR, &value, &origin, &e), 0);
    T_TEXT(value, "/file");
    T_TEXT(gpq_config_where(&c, GPQ_KEY_STATE_DIR, origin, where, sizeof(where)), PATH ":2");
    T_EQ(setenv("GPUDISPATCH_STATE", "/variable", 1), 0);
    T_EQ(gpq_config_get(&c, GPQ_KEY_STATE_DIR, &value, &origin, &e), 0);
    T_TEXT(value, "/variable");
    T_TEXT(gpq_config_where(&c, GPQ_KEY_STATE_DIR, origin, where, sizeof(where)),
           "GPUDISPATCH_STATE");
    T_EQ(gpq_config_flag(&c, GPQ_KEY_STATE_DIR, "/flag", &e), 0);
    T_EQ(gpq_config_get(&c, GPQ_KEY_STATE_DIR, &value, &origin, &e), 0);
    T_TEXT(value, "/flag");
    T_TEXT(gpq_config_where(&c, GPQ_KEY_STATE_DIR, origin, where, sizeof(where)), "--state-dir");
    T_EQ(gpq_config_get(&c, GPQ_KEY_KEEP_AGE, &value, &origin, &e), 0);
    T_TEXT(value, "90d");
    T_TEXT(gpq_config_where(&c, GPQ_KEY_KEEP_AGE, origin, where, sizeof(where)), "default");
    T_EQ(gpq_config_get(&c, GPQ_KEY_NOTIFY, &value, &origin, &e), 0);
    T_CHECK(!value);
    T_TEXT(gpq_config_where(&c, GPQ_KEY_NOTIFY, origin, where, sizeof(where)), "not set");
    T_EQ(gpq_config_flag(&c, GPQ_KEY_CPUS, "many", &e), GPQ_EINVAL);
    T_TEXT(e.text, "--cpus: 'many': expected a number from 1 to 65536");
    T_EQ(unsetenv("GPUDISPATCH_STATE"), 0);
    gpq_config_free(&c);
}

/* ---- Places ---- */

/* The case runs with a directory of its own as the present one. */
static void expect_place(const char *given, const char *place, bool must)
{
    char *path;
    bool is;
    struct gpq_error e;
    T_EQ(gpq_config_place(given, &path, &is, &e), 0);
    if (place)
        T_TEXT(path ? path : "none", place);
    else
        T_CHECK(!path);
    T_EQ(is, must);
    free(path);
}

static void set(const char *name, const char *value)
{
    T_EQ(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

T_CASE(places)
{
    const char *home = getenv("HOME");
    char *before = home ? strdup(home) : NULL, here[4096], relative[4200];
    T_CHECK(getcwd(here, sizeof(here)));
    (void)snprintf(relative, sizeof(relative), "%s/x/y", here);
    set("GPUDISPATCH_CONFIG", NULL);
    set("XDG_CONFIG_HOME", NULL);
    set("HOME", NULL);
    expect_place(NULL, NULL, false);
    set("HOME", "/home/a");
    expect_place(NULL, "/home/a/.config/gpudispatch/config", false);
    set("XDG_CONFIG_HOME", "relative");
    expect_place(NULL, "/home/a/.config/gpudispatch/config", false);
    set("XDG_CONFIG_HOME", "/c");
    expect_place(NULL, "/c/gpudispatch/config", false);
    set("GPUDISPATCH_CONFIG", "");
    expect_place(NULL, "/c/gpudispatch/config", false);
    set("GPUDISPATCH_CONFIG", "/d/e");
    expect_place(NULL, "/d/e", true);
    expect_place("x/y", relative, true);
    set("GPUDISPATCH_CONFIG", NULL);
    set("XDG_CONFIG_HOME", NULL);
    set("HOME", before);
    free(before);
}

static void write_file(const char *path, const char *text)
{
    FILE *out = fopen(path, "we");
    T_CHECK(out && fputs(text, out) >= 0);
    T_EQ(fclose(out), 0);
}

T_CASE(files)
{
    char directory[] = "/tmp/gpq-config-XXXXXX", path[64], other[64], text[128];
    struct gpq_config c;
    struct gpq_error e;
    const char *value;
    T_CHECK(mkdtemp(directory));
    (void)snprintf(path, sizeof(path), "%s/config", directory);
    (void)snprintf(other, sizeof(other), "%s/link", directory);
    T_EQ(gpq_config_read(path, &c, &e), GPQ_ENOTFOUND);
    (void)snprintf(text, sizeof(text), "%s: No such file or directory", path);
    T_TEXT(e.text, text);
    write_file(path, "devices = 3\n");
    T_EQ(symlink("config", other), 0);
    T_EQ(gpq_config_read(other, &c, &e), 0);
    T_EQ(gpq_config_get(&c, GPQ_KEY_DEVICES, &value, NULL, &e), 0);
    T_TEXT(value, "3");
    T_TEXT(c.directory, directory);
    char *plugin = gpq_config_path(&c, "a.so");
    (void)snprintf(text, sizeof(text), "%s/a.so", directory);
    T_TEXT(plugin, text);
    free(plugin);
    plugin = gpq_config_path(&c, "/b.so");
    T_TEXT(plugin, "/b.so");
    free(plugin);
    gpq_config_free(&c);
    T_EQ(truncate(path, (1 << 20) + 1), 0);
    T_EQ(gpq_config_read(path, &c, &e), GPQ_EINVAL);
    (void)snprintf(text, sizeof(text), "%s: more than 1048576 bytes: is it a config file?", path);
    T_TEXT(e.text, text);
    T_EQ(gpq_config_read(directory, &c, &e), GPQ_EIO);
    set("GPUDISPATCH_CONFIG", NULL);
    set("XDG_CONFIG_HOME", directory); /* it has no folder gpudispatch */
    T_EQ(gpq_config_read(NULL, &c, &e), 0);
    T_EQ(c.n, 1);
    gpq_config_free(&c);
    set("XDG_CONFIG_HOME", NULL);
    T_EQ(unlink(other), 0);
    T_EQ(unlink(path), 0);
    T_EQ(rmdir(directory), 0);
}

/* ---- Words ---- */

T_CASE(words)
{
    static const struct {
        const char *text, *words; /* each in angle brackets; NULL: refused */
    } rows[] = {
        { "", "" },
        { "  ", "" },
        { "a", "<a>" },
        { " a  b\tc ", "<a><b><c>" },
        { "'a b' \"c d\"", "<a b><c d>" },
        { "a'b'\"c\"d", "<abcd>" },
        { "'' \"\"", "<><>" },
        { "a\\ b \\'c \\\\", "<a b><'c><\\>" },
        { "'a\\' \"b\\n\\\"\\\\\"", "<a\\><b\\n\"\\>" },
        { "$HOME *", "<$HOME><*>" },
        { "'a", NULL },
        { "a\"", NULL },
        { "\"a\\", NULL },
        { "\"a\\\"", NULL },
        { "a\\", NULL },
    };
    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        char **words = NULL, text[64] = "";
        struct gpq_error e;
        int n = gpq_split_words(rows[i].text, &words, &e), count = 0;
        if (!rows[i].words) {
            T_EQ(n, GPQ_EINVAL);
            continue;
        }
        for (char **w = words; *w; w++, count++) {
            size_t used = strlen(text);
            (void)snprintf(text + used, sizeof(text) - used, "<%s>", *w);
        }
        T_TEXT(text, rows[i].words);
        T_EQ(n, count);
        free(words);
    }
}

/* ---- Documents ---- */

static void expect_row(const char *page, const struct gpq_key_row *key)
{
    char row[512], value[64] = "none";
    if (key->value)
        (void)snprintf(value, sizeof(value), "`%s`", key->value);
    (void)snprintf(row, sizeof(row), "\n| `%s` | %s | %s | %s |\n", key->name,
                   gpq_kind_text(key->kind), value, key->help);
    if (!strstr(page, row))
        T_FAIL("docs/reference/config.md has no row%s", row);
}

/* Each key has a row in the table of its section. */
T_CASE(each_key_is_documented)
{
    static const char *const titles[GPQ_SECTIONS] = { "\n## Before the first section\n",
                                                      "\n## Classes\n", "\n## Needs\n" };
    static char page[1 << 16];
    FILE *in = fopen(T_CONFIG_PAGE, "re");
    T_CHECK(in);
    T_CMP(fread(page, 1, sizeof(page) - 1, in), <, sizeof(page) - 1);
    T_EQ(fclose(in), 0);
    for (int i = 0; i < GPQ_KEYS; i++) {
        const char *from = strstr(page, titles[gpq_keys[i].section]);
        T_CHECK(from);
        const char *end = strstr(from + 1, "\n## ");
        char *text = end ? strndup(from, (size_t)(end - from)) : strdup(from);
        expect_row(text, &gpq_keys[i]);
        free(text);
    }
}
