/* SPDX-License-Identifier: MIT */
/* submit.c - a submit, from the command line and its files to the request. */
#include "queue/client/submit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/client/environment.h"
#include "queue/client/ids.h"
#include "queue/client/option.h"
#include "queue/client/place.h"
#include "queue/client/verbs.h"
#include "queue/client/words.h"
#include "queue/config/values.h"
#include "queue/files/stamp.h"
#include "queue/jobs/array.h"

enum { NAME_MOST = 255 };

/* ---- Programs ---- */

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* As execvp(3) finds it, with the PATH and the directory of the command. */
static bool find_program(const struct gpq_submit_call *s, const char *name, const char *cwd)
{
    const char *path = gpq_environment_value(s->environment, "PATH");
    char whole[GPQ_PATH];
    if (strchr(name, '/'))
        return gpq_path(whole, "%s%s%s", *name == '/' ? "" : cwd, *name == '/' ? "" : "/", name) ==
                   0 &&
               is_program(whole);
    for (const char *at = path ? path : "/usr/local/bin:/bin:/usr/bin"; at;) {
        size_t length = strcspn(at, ":");
        bool absolute = *at == '/';
        if (gpq_path(whole, "%s%s%.*s/%s", absolute ? "" : cwd, absolute ? "" : "/", (int)length,
                     at, name) == 0 &&
            is_program(whole))
            return true;
        at = at[length] ? at + length + 1 : NULL;
    }
    return false;
}

static bool is_file(const char *name, const char *cwd)
{
    char path[GPQ_PATH];
    struct stat st;
    return gpq_path(path, "%s%s%s", *name == '/' ? "" : cwd, *name == '/' ? "" : "/", name) == 0 &&
           stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int check_program(struct gpq_submit_call *s, const char *name, const char *cwd,
                         struct gpq_error *e)
{
    bool known = !strchr(name, '/') && json_object_get(s->found, name);
    if (s->call->given[OPTION_NO_CHECK] || known)
        return 0;
    if (!find_program(s, name, cwd))
        return gpq_fail(e, GPQ_EINVAL, "program '%.80s' %s; --no-check accepts it all the same",
                        name,
                        !strchr(name, '/')   ? "is not found in PATH"
                        : is_file(name, cwd) ? "is not executable (chmod +x)"
                                             : "is not found");
    (void)json_object_set_new(s->found, name, json_true());
    return 0;
}

/* Paths are absolute: they differ from names of programs in `found`. */
static int check_directory(struct gpq_submit_call *s, const char *path, struct gpq_error *e)
{
    struct stat st;
    if (s->call->given[OPTION_NO_CHECK] || json_object_get(s->found, path))
        return 0;
    int code = stat(path, &st) < 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
    if (code != 0)
        return gpq_fail(e, GPQ_EINVAL, "--cwd: '%.200s': %s; --no-check accepts it all the same",
                        path, strerror(code));
    (void)json_object_set_new(s->found, path, json_true());
    return 0;
}

/* ---- One task ---- */

/* Most submits have either lines for a shell or none: their first task decides for the base. */
static bool is_shell(const struct gpq_submit_call *s)
{
    return json_is_true(json_object_get(s->base, "shell"));
}

/* The text by which the specs of lines are known; "" is the base. */
static char *text_of_options(const struct gpq_submit_call *s, const struct gpq_job *job)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    for (size_t i = 0; f && i < job->n_options; i++)
        if (strcmp(job->options[i].name, "name") != 0 && strcmp(job->options[i].name, "key") != 0)
            fprintf(f, "%s=%zu:%s;", job->options[i].name, strlen(job->options[i].value),
                    job->options[i].value);
    if (f && job->replace)
        fputs("replace", f);
    if (f && job->is_line != is_shell(s))
        fputs(job->is_line ? "shell" : "no shell", f);
    if (!f || fclose(f) != 0)
        return NULL;
    return text;
}

/* What the spec of a line has beside the members of the base. */
static json_t *without_base(json_t *spec, json_t *base)
{
    json_t *own = json_pack("{s:i}", "like", 0), *value;
    const char *name;
    json_object_foreach(spec, name, value) if (!json_equal(value, json_object_get(base, name)))(
        void) json_object_set(own, name, value);
    return own;
}

/* Adds the spec of a line with options of its own. */
static int add_spec(struct gpq_submit_call *s, const struct gpq_job *job, const char *text,
                    json_int_t *ret, struct gpq_error *e)
{
    json_t *spec = json_deep_copy(s->base), *environment = NULL;
    struct gpq_members m = { &s->config, s->now, spec, NULL };
    int code = spec ? 0 : gpq_fail(e, GPQ_ENOMEM, "no memory");
    for (size_t i = 0; code == 0 && i < job->n_options; i++) {
        enum option_id option = option_of_column(job->options[i].name);
        if (option == OPTION_AFTER || option == OPTION_OR) /* in place of those of all lines */
            (void)json_object_del(option == OPTION_AFTER ? spec : json_object_get(spec, "needs"),
                                  option == OPTION_AFTER ? "after" : "or");
        if (option == OPTION_ENV && !environment &&
            (!(environment = json_deep_copy(s->environment)) ||
             json_object_set_new(spec, "environment", environment) != 0))
            code = gpq_fail(e, GPQ_ENOMEM, "no memory");
        else if (option == OPTION_ENV)
            code = gpq_environment_set(environment, job->options[i].value, e);
        else
            code = gpq_member_set(&m, option, job->options[i].value, e);
    }
    if (code == 0 && ((job->replace && json_object_set_new(spec, "replace", json_true()) != 0) ||
                      (job->is_line != is_shell(s) &&
                       json_object_set_new(spec, "shell", json_boolean(job->is_line)) != 0)))
        code = gpq_fail(e, GPQ_ENOMEM, "no memory");
    *ret = (json_int_t)json_array_size(s->specs);
    if (code == 0 && (json_array_append_new(s->specs, without_base(spec, s->base)) != 0 ||
                      json_object_set_new(s->index, text, json_integer(*ret)) != 0))
        code = gpq_fail(e, GPQ_ENOMEM, "no memory");
    json_decref(spec);
    return code;
}

static int find_spec(struct gpq_submit_call *s, const struct gpq_job *job, json_int_t *ret,
                     struct gpq_error *e)
{
    if (job->is_line && json_array_size(s->tasks) == 0 && json_array_size(s->specs) == 1) {
        (void)json_object_set_new(s->base, "shell", json_true());
        (void)json_object_set_new(json_array_get(s->specs, 0), "shell", json_true());
    }
    char *text = text_of_options(s, job);
    *ret = 0;
    if (!text)
        return gpq_fail(e, GPQ_ENOMEM, "no memory");
    int code = 0;
    const json_t *known = json_object_get(s->index, text);
    if (known)
        *ret = json_integer_value(known);
    else if (*text)
        code = add_spec(s, job, text, ret, e);
    free(text);
    return code;
}

static const char *cwd_of(const struct gpq_submit_call *s, json_int_t spec)
{
    const char *own =
        json_string_value(json_object_get(json_array_get(s->specs, (size_t)spec), "cwd"));
    return own ? own : gpq_text_of(s->base, "cwd");
}

static json_t *list_of_argv(const struct gpq_job *job)
{
    json_t *list = json_array();
    for (size_t i = 0; i < job->n_argv; i++)
        (void)json_array_append_new(list, json_string(job->argv[i]));
    return list;
}

/* The state of the files that a task names: it is not joined if they have changed. */
static int set_stamp(json_t *task, char *const *words, const char *cwd)
{
    char *stamp = gpq_stamp_make(words, cwd);
    int code =
        stamp && json_object_set_new(task, "stamp", json_string(stamp)) == 0 ? 0 : GPQ_ENOMEM;
    free(stamp);
    return code;
}

/* A path that a class works on, absolute. */
static int set_payload(json_t *task, const char *path, struct gpq_error *e)
{
    char whole[GPQ_PATH];
    struct stat st;
    if (stat(path, &st) < 0)
        return gpq_fail(e, GPQ_EINVAL, "%.200s: %s", path, strerror(errno));
    if (!gpq_place_absolute(path, whole))
        return gpq_fail(e, GPQ_EINVAL, "%.200s: its path is too long", path);
    if (json_object_set_new(task, "payload", json_string(whole)) != 0)
        return gpq_fail(e, GPQ_EINVAL, "the path is not UTF-8");
    return set_stamp(task, (char *[]){ whole, NULL }, "/");
}

static bool joins(const struct gpq_submit_call *s)
{
    const bool *given = s->call->given;
    bool fresh = given[OPTION_FRESH] || given[OPTION_ATTACHED];
    return (s->is_list && !fresh) || given[OPTION_JOIN] || given[OPTION_KEY];
}


static int set_command(struct gpq_submit_call *s, const struct gpq_job *job, json_t *task,
                       const char *cwd, struct gpq_error *e)
{
    int code = check_directory(s, cwd, e);
    if (code == 0)
        code = check_program(s, job->argv[0], cwd, e);
    if (code == 0 && json_object_set_new(task, "argv", list_of_argv(job)) != 0)
        code = GPQ_ENOMEM;
    if (code < 0 || !joins(s))
        return code;
    char **words = gpq_stamp_words((char *const *)(uintptr_t)job->argv);
    code = words ? set_stamp(task, words, cwd) : GPQ_ENOMEM;
    free(words);
    return code;
}

static int set_task(struct gpq_submit_call *s, const struct gpq_job *job, json_t *task,
                    struct gpq_error *e)
{
    struct gpq_members m = { &s->config, s->now, NULL, task };
    json_int_t spec;
    int code = gpq_members_of_call(&m, s->call, e);
    for (size_t i = 0; code == 0 && i < job->n_options; i++)
        code = gpq_member_set(&m, option_of_column(job->options[i].name), job->options[i].value, e);
    if (code == 0)
        code = find_spec(s, job, &spec, e);
    if (code == 0 && (spec != 0 && json_object_set_new(task, "spec", json_integer(spec)) != 0))
        code = GPQ_ENOMEM;
    if (code == 0 && job->line != 0)
        (void)json_object_set_new(task, "line", json_integer((json_int_t)job->line));
    if (code == 0)
        code = s->call->given[OPTION_CLASS] ? set_payload(task, job->argv[0], e)
                                            : set_command(s, job, task, cwd_of(s, spec), e);
    return code;
}

int gpq_submit_job(const struct gpq_job *job, void *user, struct gpq_error *e)
{
    struct gpq_submit_call *s = user;
    json_t *task = json_object();
    int code = task ? set_task(s, job, task, e) : GPQ_ENOMEM;
    if (code == 0 && json_array_append(s->tasks, task) != 0)
        code = GPQ_ENOMEM;
    json_decref(task);
    if (code == GPQ_ENOMEM)
        return gpq_fail(e, code, "no memory for %zu tasks", json_array_size(s->tasks));
    return code;
}

/* ---- What is submitted ---- */

/* The name of a file or program, without directory and what is behind the last dot. */
static void name_of_file(const char *path, char ret[256])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t length = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    snprintf(ret, 256, "%.*s", (int)(length < 255 ? length : 255), name);
}

/* An option whose value has names in braces: each line has its own. */
static bool is_template(const struct call *call, const struct said *said)
{
    return (call->given[OPTION_EACH] || call->given[OPTION_ARRAY]) && options[said->option].line &&
           said->value && strchr(said->value, '{');
}

/* Names of the options of lines, and the options that are templates. */
static int list_options(struct gpq_submit_call *s)
{
    const struct call *call = s->call;
    size_t n = 0;
    for (unsigned i = OPTION_END + 1; i < OPTION_COUNT; i++)
        if (options[i].line)
            s->known[n++] = options[i].name;
    s->texts = calloc(call->n_said + 1, sizeof(*s->texts));
    for (size_t i = 0; s->texts && i < call->n_said; i++)
        if (is_template(call, &call->said[i]))
            s->texts[s->n_texts++] =
                (struct gpq_job_option){ options[call->said[i].option].name, call->said[i].value };
    return s->texts ? 0 : gpq_say(EXIT_FAILED, "no memory");
}

struct gpq_jobs_how gpq_submit_how(const struct gpq_submit_call *s, const char *path)
{
    return (struct gpq_jobs_how){ .format = gpq_jobs_format_of(path),
                                  .shell = s->shell,
                                  .command = (const char *const *)s->call->command,
                                  .texts = s->texts,
                                  .n_texts = s->n_texts,
                                  .known = s->known };
}

static int set_format(const struct call *call, enum gpq_jobs_format *format)
{
    static const char *const names[] = {
        [GPQ_JOBS_LINES] = "lines", [GPQ_JOBS_CSV] = "csv", [GPQ_JOBS_JSONL] = "jsonl"
    };
    const char *given = call->value[OPTION_FORMAT];
    for (int i = 0; given && i < 3; i++)
        if (!strcmp(given, names[i])) {
            *format = (enum gpq_jobs_format)i;
            return 0;
        }
    return given ? usage(call->verb, "%s: --format is '%s', expected lines, csv or jsonl",
                         call->verb->name, given)
                 : 0;
}

static int failed(const char *place, const struct gpq_error *e)
{
    return gpq_say(e->code == GPQ_ENOMEM ? EXIT_FAILED : EXIT_USAGE, "%s%s%s", place,
                   *place ? ": " : "", e->text);
}

static int read_file(struct gpq_submit_call *s, const char *path, bool paths)
{
    struct gpq_error e = { 0 };
    struct gpq_jobs_how how = gpq_submit_how(s, path);
    if (paths)
        how.format = GPQ_JOBS_FILES;
    else if (set_format(s->call, &how.format))
        return EXIT_USAGE;
    if (strcmp(path, "-") != 0 && !*s->name)
        name_of_file(path, s->name);
    int code = gpq_jobs_file(path, &how, gpq_submit_job, s, &s->counts, &e);
    if (code < 0 && s->call->operands > 0 && path == s->call->operand[0] &&
        access(path, F_OK) < 0) /* submit "echo hello" */
        return gpq_say(EXIT_USAGE, "%s; a command stands behind --", e.text);
    return code < 0 ? failed(strncmp(e.text, "line ", 5) == 0 ? path : "", &e) : 0;
}

static int read_array(struct gpq_submit_call *s)
{
    struct gpq_error e = { 0 };
    struct gpq_jobs_how how = gpq_submit_how(s, "");
    struct gpq_array array;
    int code = gpq_array_read(s->call->value[OPTION_ARRAY], &array, &e);
    if (code == 0) {
        s->at_once = array.at_once;
        code = gpq_array_jobs(&array, &how, gpq_submit_job, s, &e);
    }
    return code < 0 ? failed("--array", &e) : 0;
}

/* The operands are the files themselves. */
static int read_operands(struct gpq_submit_call *s)
{
    struct gpq_error e = { 0 };
    for (size_t i = 0; i < s->call->operands; i++) {
        const char *argv[] = { s->call->operand[i], NULL };
        struct gpq_job job = { .argv = argv, .n_argv = 1 };
        if (gpq_submit_job(&job, s, &e) < 0)
            return failed("", &e);
    }
    return s->call->value[OPTION_FILES] ? read_file(s, s->call->value[OPTION_FILES], true) : 0;
}

static int read_command(struct gpq_submit_call *s)
{
    struct gpq_error e = { 0 };
    int code = gpq_jobs_command((const char *const *)s->call->command, gpq_submit_job, s, &e);
    return code < 0 ? failed("", &e) : 0;
}

/* Without a place for the line or number all tasks are equal, and would join the first one. */
static bool has_place(const struct call *call)
{
    const char *key = call->value[OPTION_KEY];
    for (char **word = call->command; *word; word++)
        if (strchr(*word, '{'))
            return true;
    return key && strchr(key, '{');
}

static int check_options(const struct call *call)
{
    static const enum option_id excluded[][2] = {
        { OPTION_ATTACHED, OPTION_JOIN }, { OPTION_ATTACHED, OPTION_KEY },
        { OPTION_FRESH, OPTION_JOIN },    { OPTION_FRESH, OPTION_JOIN_ANYWAY },
        { OPTION_EACH, OPTION_ARRAY },    { OPTION_CLASS, OPTION_EACH },
        { OPTION_CLASS, OPTION_ARRAY },   { OPTION_CLASS, OPTION_FOLLOW_FILE },
    };
    const char *verb = call->verb->name, *batch = call->value[OPTION_BATCH];
    for (size_t i = 0; i < sizeof(excluded) / sizeof(excluded[0]); i++)
        if (call->given[excluded[i][0]] && call->given[excluded[i][1]])
            return usage(call->verb, "%s: --%s and --%s exclude one another", verb,
                         options[excluded[i][0]].name, options[excluded[i][1]].name);
    if (batch && strlen(batch) > NAME_MOST)
        return usage(call->verb, "%s: --batch has %zu bytes, the maximum is %d", verb,
                     strlen(batch), NAME_MOST);
    if (call->given[OPTION_FILES] && !call->given[OPTION_CLASS])
        return usage(call->verb, "%s: --files needs --class NAME", verb);
    return 0;
}

/* The tasks come from --class, --each or --array with a command, from FILE, or are one command. */
static int check_source(const struct call *call)
{
    const char *verb = call->verb->name, *file = call->operand[0];
    const char *many = call->given[OPTION_EACH]    ? "each"
                       : call->given[OPTION_ARRAY] ? "array"
                                                   : NULL;
    bool is_new = call->given[OPTION_FRESH] || call->given[OPTION_ATTACHED];
    if (call->command && !call->command[0])
        return usage(call->verb, "%s: no command stands behind --", verb);
    if (call->given[OPTION_CLASS])
        return call->command ? usage(call->verb, "%s: --class takes files, no command", verb) : 0;
    if (many && file)
        return usage(call->verb, "%s: FILE, --each and --array exclude one another", verb);
    if (many && !call->command)
        return usage(call->verb, "%s: --%s needs a command behind --", verb, many);
    if (many && !is_new && !has_place(call))
        return usage(call->verb,
                     "%s: --%s: the command has no {}, so that its tasks are equal and join the "
                     "first one; --fresh makes each a task of its own",
                     verb, many);
    if (file && call->command)
        return usage(call->verb,
                     "%s: FILE '%s' has its own commands; --each makes it the data of "
                     "the command behind --",
                     verb, file);
    if (call->operands > 1)
        return usage(call->verb,
                     "%s: unexpected argument '%s': expected one FILE; a command stands behind --",
                     verb, call->operand[1]);
    if (file && !*file)
        return usage(call->verb, "%s: FILE is empty, expected the name of a file", verb);
    if (!many && !file && !call->command)
        return usage(call->verb, "%s: expected FILE, or a command behind --", verb);
    if (call->given[OPTION_EACH])
        file = call->value[OPTION_EACH];
    if (call->given[OPTION_FOLLOW_FILE] && (!file || !strcmp(file, "-")))
        return usage(call->verb, "%s: --watch needs a file", verb);
    return 0;
}

/* The members of all specs: options, directory and environment. */
static int read_base(struct gpq_submit_call *s)
{
    struct gpq_error e = { 0 };
    char here[GPQ_PATH];
    const char *env = NULL;
    s->base = json_object();
    struct gpq_members m = { &s->config, s->now, s->base, NULL };
    int code = gpq_config_get(&s->config, GPQ_KEY_ENV, &env, NULL, &e);
    if (code == 0)
        code = gpq_config_get(&s->config, GPQ_KEY_SHELL, &s->shell, NULL, &e);
    if (code == 0 && s->call->value[OPTION_SHELL])
        s->shell = s->call->value[OPTION_SHELL];
    if (code == 0 && !getcwd(here, sizeof(here)))
        code = gpq_fail(&e, GPQ_EUNUSABLE, "the present directory: %s", strerror(errno));
    if (code == 0 && !s->call->given[OPTION_CLASS])
        code = json_object_set_new(s->base, "cwd", json_string(here)) == 0
                   ? 0
                   : gpq_fail(&e, GPQ_EINVAL, "the present directory is not UTF-8");
    bool clean = s->call->given[OPTION_CLEAN_ENV] || (env && !strcmp(env, "clean"));
    if (code == 0)
        code = gpq_environment(s->call, clean, &s->environment, &e);
    for (size_t i = 0; code == 0 && i < s->call->n_said; i++)
        if (!is_template(s->call, &s->call->said[i]))
            code = gpq_member_set(&m, s->call->said[i].option, s->call->said[i].value, &e);
    return code < 0 ? failed("", &e) : 0;
}

static int read_config(struct gpq_submit_call *s)
{
    struct gpq_error e = { 0 };
    int code = gpq_config_read(s->call->value[OPTION_CONFIG], &s->config, &e);
    return code < 0 ? gpq_say_config(code, &e) : 0;
}

static int read_sources(struct gpq_submit_call *s)
{
    const struct call *call = s->call;
    if (call->given[OPTION_CLASS])
        return read_operands(s);
    if (call->given[OPTION_ARRAY])
        return read_array(s);
    if (call->given[OPTION_EACH])
        return read_file(s, call->value[OPTION_EACH], false);
    return call->operands > 0 ? read_file(s, call->operand[0], false) : read_command(s);
}

/* ---- The batch ---- */

static int set_max_fails(const struct call *call, json_t *batch)
{
    const char *text = call->value[OPTION_MAX_FAILS];
    struct gpq_error e = { 0 };
    char number[24];
    uint64_t n;
    if (!text)
        return 0;
    size_t length = strcspn(text, "%");
    bool percent = text[length] == '%' && !text[length + 1];
    snprintf(number, sizeof(number), "%.*s", (int)(percent && length < 23 ? length : 23), text);
    if (gpq_value_number(number, 0, percent ? 100 : UINT32_MAX, &n, &e) < 0)
        return usage(call->verb, "%s: --max-fails: %s", call->verb->name, e.text);
    return json_object_set_new(batch, percent ? "max_fails_percent" : "max_fails",
                               json_integer((json_int_t)n)) == 0
               ? 0
               : EXIT_FAILED;
}

static int set_at_once(const struct gpq_submit_call *s, json_t *batch)
{
    uint64_t n = s->at_once;
    int status = gpq_option_number(s->call, OPTION_AT_ONCE, 1, UINT32_MAX, &n);
    if (status != 0)
        return status;
    return n == 0 || json_object_set_new(batch, "at_once", json_integer((json_int_t)n)) == 0
               ? 0
               : EXIT_FAILED;
}

static json_t *batch_of(struct gpq_submit_call *s, const char *append)
{
    if (append)
        return json_pack("{s:s}", "append", append);
    json_t *batch = json_object();
    const char *notify = s->call->value[OPTION_NOTIFY];
    char here[GPQ_PATH];
    int status = batch ? 0 : gpq_say(EXIT_FAILED, "no memory");
    if (status == 0 && *s->name && gpq_are_ids(s->name))
        status = gpq_say(EXIT_USAGE,
                         "the name of the batch, '%s', reads as an id: no verb would find it; "
                         "--batch sets another one",
                         s->name);
    if (status == 0 && *s->name && json_object_set_new(batch, "name", json_string(s->name)) != 0)
        status = gpq_say(EXIT_USAGE,
                         "the name of the batch, '%.80s', is not UTF-8; --batch sets one", s->name);
    if (status == 0 && s->open && json_object_set_new(batch, "open", json_true()) != 0)
        status = gpq_say(EXIT_FAILED, "no memory");
    if (status == 0 && notify && json_object_set_new(batch, "notify", json_string(notify)) != 0)
        status = gpq_say(EXIT_USAGE, "--notify is not UTF-8");
    if (status == 0 && notify && getcwd(here, sizeof(here))) /* else in the state directory */
        (void)json_object_set_new(batch, "notify_cwd", json_string(here));
    if (status == 0)
        status = set_max_fails(s->call, batch);
    if (status == 0)
        status = set_at_once(s, batch);
    if (status == 0)
        return batch;
    json_decref(batch);
    return NULL;
}

/* ---- All of it ---- */

/* Tasks are joined within a name, so that each batch has one. */
static void set_name(struct gpq_submit_call *s)
{
    const struct call *call = s->call;
    if (*s->name)
        return;
    if (call->given[OPTION_CLASS])
        snprintf(s->name, sizeof(s->name), "%s", call->value[OPTION_CLASS]);
    else
        name_of_file(call->command ? call->command[0] : "stdin", s->name);
}

int gpq_submit_read(struct gpq_submit_call *s, const struct call *call)
{
    *s = (struct gpq_submit_call){ .call = call, .now = gpq_now_wall() };
    int status = check_options(call);
    if (status != 0 || (status = check_source(call)) != 0)
        return status;
    s->specs = json_array();
    s->tasks = json_array();
    s->index = json_object();
    s->found = json_object();
    s->is_list = call->operands > 0 || call->given[OPTION_EACH] || call->given[OPTION_ARRAY] ||
                 call->given[OPTION_CLASS];
    snprintf(s->name, sizeof(s->name), "%s",
             call->value[OPTION_BATCH] ? call->value[OPTION_BATCH] : "");
    if ((status = list_options(s)) != 0 || (status = read_config(s)) != 0 ||
        (status = read_base(s)) != 0)
        return status;
    json_t *first = json_copy(s->base);
    if (!first || json_object_set(first, "environment", s->environment) != 0 ||
        json_array_append_new(s->specs, first) != 0)
        return gpq_say(EXIT_FAILED, "no memory");
    status = read_sources(s);
    set_name(s);
    if (status == 0 && json_array_size(s->tasks) == 0 && !call->given[OPTION_FOLLOW_FILE])
        status = gpq_say(EXIT_USAGE, "%s: there are no tasks in it",
                         call->operands > 0 ? call->operand[0] : call->verb->name);
    json_t *batch = status == 0 ? batch_of(s, NULL) : NULL; /* before an agent is started */
    if (status == 0 && !batch)
        status = EXIT_USAGE;
    json_decref(batch);
    return status;
}

void gpq_submit_free(struct gpq_submit_call *s)
{
    json_decref(s->environment);
    json_decref(s->base);
    json_decref(s->specs);
    json_decref(s->tasks);
    json_decref(s->index);
    json_decref(s->found);
    free(s->texts);
    gpq_config_free(&s->config);
}

/* ---- The request ---- */

static void draw_request(char ret[33])
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        abort(); /* 16 bytes are never short (getrandom(2)) */
    for (int i = 0; i < 16; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

json_t *gpq_submit_request(struct gpq_submit_call *s, const char *append)
{
    const bool *given = s->call->given;
    char request[33];
    draw_request(request);
    json_t *batch = batch_of(s, append);
    if (!batch)
        return NULL;
    json_t *whole = json_pack(
        "{s:s, s:s, s:o, s:b, s:b, s:b, s:b, s:b, s:O, s:O}", "do", "submit", "request", request,
        "batch", batch, "join", (int)joins(s), "join_anyway", (int)given[OPTION_JOIN_ANYWAY], "try",
        (int)given[OPTION_DRY_RUN], "allow_wait", (int)given[OPTION_ALLOW_WAIT], "list",
        (int)(json_array_size(s->tasks) <= 100000), "specs", s->specs, "tasks", s->tasks);
    if (!whole)
        (void)gpq_say(EXIT_FAILED, "no memory for %zu tasks", json_array_size(s->tasks));
    return whole;
}

/* The line of the first task with this spec, or of the task itself.  0: it has none, as the options
 * of the command line, which are spec 0. */
static int64_t line_of(const struct gpq_submit_call *s, bool is_spec, unsigned long index)
{
    size_t i = index;
    if (is_spec && index == 0)
        return 0;
    for (i = is_spec ? 0 : index; is_spec && i < json_array_size(s->tasks); i++)
        if ((unsigned long)gpq_number_of(json_array_get(s->tasks, i), "spec") == index)
            break;
    return gpq_number_of(json_array_get(s->tasks, i), "line");
}

/* The file of the lines; "" = none with a name. */
static const char *file_of(const struct call *call)
{
    const char *path = call->given[OPTION_EACH]    ? call->value[OPTION_EACH]
                       : call->given[OPTION_FILES] ? call->value[OPTION_FILES]
                       : call->operands > 0        ? call->operand[0]
                                                   : "-";
    return strcmp(path, "-") != 0 ? path : "";
}

/* The agent names items of the request, specs[3].needs, and a person knows lines. */
static int judge(const struct gpq_submit_call *s, json_t *reply)
{
    const char *text = gpq_text_of(reply, "error");
    bool is_spec = strncmp(text, "specs[", 6) == 0, is_task = strncmp(text, "tasks[", 6) == 0,
         is_key = strcmp(gpq_text_of(reply, "code"), "EKEY") == 0;
    char *rest, line[GPQ_PATH + 32] = "", room[1024];
    const char *file = file_of(s->call);
    if (json_is_true(json_object_get(reply, "ok")) || (!is_spec && !is_task && !is_key))
        return gpq_session_judge(reply);
    if (is_spec || is_task) {
        unsigned long index = strtoul(text + 6, &rest, 10);
        int64_t number = line_of(s, is_spec, index);
        if (number > 0)
            snprintf(line, sizeof(line), "%.4000s%sline %" PRIi64 ": ", file, *file ? ": " : "",
                     number);
        text = rest + strspn(rest, "].: ");
    }
    return gpq_say(gpq_session_status(reply), "%s%s%s", line,
                   gpq_options_text(text, room, sizeof(room)),
                   is_key ? "; another --key makes a task of its own" : "");
}

/* --after NAME: the id of that batch, in its place. */
static int find_names(struct gpq_session *session, json_t *after)
{
    char text[32];
    struct gpq_id id;
    int status = 0;
    for (size_t i = 0; status == 0 && i < json_array_size(after); i++) {
        json_t *one = json_array_get(after, i);
        const char *name = gpq_text_of(one, "id");
        if (strchr("0123456789", *name))
            continue;
        status = gpq_id_find(session, name, &id);
        if (status == 0 && id.kind == GPQ_ID_RANGE)
            return gpq_say(EXIT_USAGE, "--after: '%s': expected the number of the batch", name);
        if (status == 0)
            (void)json_object_set_new(one, "id", json_string(gpq_id_text(&id, text)));
    }
    return status;
}

int gpq_submit_send(struct gpq_session *session, struct gpq_submit_call *s, const char *append,
                    json_t **ret)
{
    json_t *reply = NULL;
    int status = 0;
    *ret = NULL;
    for (size_t i = 0; status == 0 && i < json_array_size(s->specs); i++)
        status = find_names(session, json_object_get(json_array_get(s->specs, i), "after"));
    if (status != 0)
        return status;
    json_t *request = gpq_submit_request(s, append);
    if (!request)
        return EXIT_USAGE;
    /* It may have been applied at a loss of the connection or an interrupt: its id makes it one. */
    status = gpq_session_hear_reply(session, json_incref(request), &reply);
    if (status == -1)
        status = gpq_session_hear_reply(session, json_incref(request), &reply);
    if (status == -1)
        (void)gpq_say(status, "the tasks may have been submitted; gpudispatch ls shows them");
    json_decref(request);
    if (status == 0 && (status = judge(s, reply)) == 0) {
        *ret = reply;
        return 0;
    }
    json_decref(reply);
    return status;
}
