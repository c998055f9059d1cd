/* SPDX-License-Identifier: MIT */
/* statedir.c - which state directory, whether it is fit, and where its socket is. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue/files/filesystem.h"
#include "queue/files/socket.h"
#include "queue/files/statedir.h"

enum { NOBODY = 65534 };

static struct gpq_error e;
static char here[1024], path[GPQ_PATH], real[GPQ_PATH];

static void begin(void)
{
    T_CHECK(getcwd(here, sizeof(here)));
}

/* The text of the present directory and a name. */
static const char *in_here(const char *name)
{
    static char text[2048];

    (void)snprintf(text, sizeof(text), "%s/%s", here, name);
    return text;
}

static void expect_text(const char *part)
{
    if (!strstr(e.text, part))
        T_FAIL("no \"%s\" in: %s", part, e.text);
}

/* Each error text of a state directory says how to get another one. */
static void expect_unusable(const char *directory, const char *part)
{
    e = (struct gpq_error){ 0 };
    T_EQ(gpq_statedir_make(directory, false, real, &e), GPQ_EUNUSABLE);
    T_EQ(e.code, GPQ_EUNUSABLE);
    T_EQ(gpq_error_status(e.code), 75);
    expect_text(part);
    T_CHECK(e.text[strlen(e.text) - 1] != '.');
}

/* ---- Which one ---- */

T_CASE(the_first_place_that_is_set)
{
    struct gpq_places p = { "/given", "/state", "/home/state", "/home", "/run" };

    begin();
    T_EQ(gpq_places_find(&p, path, &e), 0);
    T_TEXT(path, "/given");
    p.given = "relative/one";
    T_EQ(gpq_places_find(&p, path, &e), 0);
    T_TEXT(path, in_here("relative/one"));
    p.given = "";
    T_EQ(gpq_places_find(&p, path, &e), 0);
    T_TEXT(path, "/state");
    p.state = NULL;
    T_EQ(gpq_places_find(&p, path, &e), 0);
    T_TEXT(path, "/home/state/gpudispatch");
    p.state_home = "not/absolute";
    T_EQ(gpq_places_find(&p, path, &e), 0);
    T_TEXT(path, "/home/.local/state/gpudispatch");
    p.home = "";
    T_EQ(gpq_places_find(&p, path, &e), GPQ_EUNUSABLE);
    expect_text("HOME is not set; set GPUDISPATCH_STATE or --state-dir");
}

T_CASE(places_of_the_environment)
{
    const char *home = getenv("HOME");
    struct gpq_places p;

    gpq_places_read("given", &p);
    T_TEXT(p.given, "given");
    T_CHECK(p.home == home);
}

/* ---- Fit or not ---- */

static void expect_mode(const char *name, mode_t mode)
{
    struct stat st;

    T_EQ(lstat(name, &st), 0);
    T_CHECK(S_ISDIR(st.st_mode));
    T_EQ(st.st_mode & 07777, mode);
}

/* Q12: made with mode 0700, and the same the next time. */
T_CASE(made_with_its_parents_and_folders)
{
    begin();
    for (int i = 0; i < 2; i++) {
        T_EQ(gpq_statedir_make(in_here("a/b/state//"), true, real, &e), 0);
        T_TEXT(real, in_here("a/b/state"));
        expect_mode("a", 0700);
        expect_mode("a/b/state", 0700);
        expect_mode("a/b/state/results", 0700);
        expect_mode("a/b/state/work", 0700);
        expect_mode("a/b/state/out", 0700);
        expect_mode("a/b/state/run", 0700);
    }
    T_EQ(gpq_statedir_check(in_here("a/b/state"), real, &e), 0);
    T_TEXT(real, in_here("a/b/state"));
    T_EQ(gpq_statedir_check(in_here("a/none"), real, &e), GPQ_ENOTFOUND);
}

/* Q12: a mode that lets others in is refused, of the directory and of its folders. */
T_CASE(a_mode_for_others)
{
    begin();
    T_EQ(mkdir("state", 0700), 0);
    T_EQ(chmod("state", 0750), 0);
    expect_unusable(in_here("state"), "mode is 0750, expected 0700; chmod 700 /");
    T_EQ(gpq_statedir_check(in_here("state"), real, &e), GPQ_EUNUSABLE);
    T_EQ(chmod("state", 0701), 0);
    expect_unusable(in_here("state"), "mode is 0701, expected 0700");
    T_EQ(chmod("state", 0700), 0);
    T_EQ(gpq_statedir_make(in_here("state"), true, real, &e), 0);
    T_EQ(chmod("state/run", 0777), 0);
    e.text[0] = 0;
    T_EQ(gpq_statedir_make(in_here("state"), true, real, &e), GPQ_EUNUSABLE);
    expect_text("folder /");
    expect_text("state/run: mode is 0777");
}

/* Q12: links in its place, and in that of a folder; above it they are those of the user. */
T_CASE(a_link)
{
    begin();
    T_EQ(mkdir("target", 0700), 0);
    T_EQ(symlink("target", "link"), 0);
    T_EQ(symlink("nowhere", "dangling"), 0);
    expect_unusable(in_here("link"), "a symbolic link, expected a directory; name its target");
    expect_unusable(in_here("link/"), "a symbolic link");
    expect_unusable(in_here("dangling"), "a symbolic link");
    T_EQ(gpq_statedir_make(in_here("link/state"), true, real, &e), 0);
    T_TEXT(real, in_here("target/state"));
    T_EQ(rmdir("target/state/out"), 0);
    T_EQ(symlink("/tmp", "target/state/out"), 0);
    T_EQ(gpq_statedir_make(in_here("link/state"), true, real, &e), GPQ_EUNUSABLE);
    expect_text("target/state/out: a symbolic link");
}

T_CASE(no_directory)
{
    begin();
    T_EQ(close(open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    expect_unusable(in_here("file"), "file: not a directory; set GPUDISPATCH_STATE or --state-dir");
    expect_unusable(in_here("file/state"), "Not a directory; set GPUDISPATCH_STATE");
}

T_CASE(a_path_that_is_too_long)
{
    static char text[GPQ_PATH + 100];

    memset(text, 'x', sizeof(text) - 1);
    text[0] = '/';
    expect_unusable(text, "its path has 4195 bytes, at most 4031; set GPUDISPATCH_STATE");
    struct gpq_places p = { .given = text };
    T_EQ(gpq_places_find(&p, path, &e), GPQ_EUNUSABLE);
    expect_text("its path exceeds 4095 bytes");
    expect_unusable("", "its path has 0 bytes");
}

/* Runs a part of a case as a user who is not root. */
static void as_nobody(void (*run)(void))
{
    int status;
    pid_t pid;

    if (geteuid() != 0)
        t_skip("needs root, which can become another user");
    T_EQ(chmod(".", 0755), 0);
    pid = fork();
    if (!pid) {
        if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
            setresuid(NOBODY, NOBODY, NOBODY))
            _exit(77);
        run();
        _exit(0);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        t_skip("this machine does not let root become another user");
    T_EQ(status, 0);
}

static void meet_foreign_directories(void)
{
    expect_unusable(in_here("foreign"), "owner is uid 0, expected 65534; set GPUDISPATCH_STATE");
    expect_unusable(in_here("foreign/state"), "mkdir: Permission denied");
    /* A HOME that belongs to root. */
    expect_unusable(in_here("home/.local/state/gpudispatch"),
                    "home/.local: mkdir: Permission denied; set GPUDISPATCH_STATE");
    /* "su" without a new XDG_RUNTIME_DIR. */
    struct gpq_places p = { .runtime = in_here("foreign") };
    T_EQ(gpq_socket_make_directory(&p, &e), GPQ_EUNUSABLE);
    expect_text("XDG_RUNTIME_DIR /");
    expect_text("owner is uid 0, expected 65534; unset it");
}

/* Q12 */
T_CASE(a_directory_of_another_user)
{
    begin();
    T_EQ(mkdir("foreign", 0700), 0);
    T_EQ(mkdir("home", 0755), 0);
    as_nobody(meet_foreign_directories);
}

T_CASE(a_home_that_is_read_only)
{
    int status;
    pid_t pid;

    begin();
    T_EQ(mkdir("home", 0755), 0);
    pid = fork();
    if (!pid) {
        if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) ||
            mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
            mount("none", "home", "tmpfs", 0, "mode=755"))
            _exit(77);
        T_EQ(gpq_statedir_make(in_here("home/state"), false, real, &e), 0);
        if (mount("none", "home", NULL, MS_REMOUNT | MS_RDONLY, NULL))
            _exit(77);
        expect_unusable(in_here("home/.local/state/gpudispatch"),
                        "mkdir: Read-only file system; set GPUDISPATCH_STATE or --state-dir");
        expect_unusable(in_here("home/state"), "write: Read-only file system; set GPUDISPATCH");
        _exit(0);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        t_skip("this machine allows no mount namespace");
    T_EQ(status, 0);
}

/* ---- The file system ---- */

T_CASE(network_file_systems)
{
    const char *name = "unchanged";

    T_TEXT(gpq_network_filesystem(NFS_SUPER_MAGIC), "NFS");
    T_TEXT(gpq_network_filesystem(SMB_SUPER_MAGIC), "SMB");
    T_TEXT(gpq_network_filesystem(V9FS_MAGIC), "9P");
    T_TEXT(gpq_network_filesystem(AFS_SUPER_MAGIC), "AFS");
    T_TEXT(gpq_network_filesystem(CODA_SUPER_MAGIC), "Coda");
    T_TEXT(gpq_network_filesystem(OCFS2_SUPER_MAGIC), "OCFS2");
    T_TEXT(gpq_network_filesystem(0x65735546), "FUSE (sshfs and others)");
    /* The signed number of a 32-bit machine. */
    T_TEXT(gpq_network_filesystem((uint64_t)(int64_t)(int32_t)0xff534d42), "CIFS");
    T_CHECK(!gpq_network_filesystem(EXT4_SUPER_MAGIC));
    T_CHECK(!gpq_network_filesystem(BTRFS_SUPER_MAGIC));
    T_CHECK(!gpq_network_filesystem(XFS_SUPER_MAGIC));
    T_CHECK(!gpq_network_filesystem(TMPFS_MAGIC));
    T_CHECK(!gpq_network_filesystem(OVERLAYFS_SUPER_MAGIC));
    T_EQ(gpq_filesystem_look("/proc", &name), 0);
    T_CHECK(!name);
    T_EQ(gpq_filesystem_look("/nowhere", &name), -ENOENT);
}

T_CASE(space)
{
    struct gpq_space s = { 0 };

    T_EQ(gpq_space_look(".", &s), 0);
    T_CMP(s.bytes, >, 0);
    T_CMP(s.inodes, !=, 0);
    T_EQ(gpq_space_look("/proc", &s), 0);
    T_EQ(s.bytes, 0);
    T_CHECK(s.inodes == UINT64_MAX);
    T_EQ(gpq_space_look("/nowhere", &s), -ENOENT);
}

/* ---- The socket ---- */

T_CASE(the_place_of_the_socket)
{
    struct gpq_places p = { .runtime = "/run/user/7" };
    char first[GPQ_SOCKET_PATH + 1], second[GPQ_SOCKET_PATH + 1];

    T_EQ(gpq_socket_find(&p, "/home/a/state", first, &e), 0);
    T_CHECK(!strncmp(first, "/run/user/7/gpudispatch/socket-", 31));
    T_EQ(strlen(first), 31 + 16);
    T_EQ(gpq_socket_find(&p, "/home/a/state2", second, &e), 0);
    T_CHECK(strcmp(first, second) != 0);
    p.runtime = "relative";
    T_EQ(gpq_socket_find(&p, "/home/a/state", first, &e), 0);
    T_TEXT(first, "/home/a/state/socket");
    p.runtime = NULL;
    T_EQ(gpq_socket_find(&p, "/home/a/state", first, &e), 0);
    T_TEXT(first, "/home/a/state/socket");
    T_EQ(gpq_socket_make_directory(&p, &e), 0);
}

T_CASE(a_socket_path_over_107_bytes)
{
    char state[200], found[GPQ_SOCKET_PATH + 1] = "unchanged";
    struct gpq_places p = { 0 };

    memset(state, 's', sizeof(state));
    state[0] = '/';
    state[100] = 0;
    T_EQ(gpq_socket_find(&p, state, found, &e), 0);
    T_EQ(strlen(found), 107);
    state[100] = 's';
    state[101] = 0;
    T_EQ(gpq_socket_find(&p, state, found, &e), GPQ_EUNUSABLE);
    expect_text("its path has 108 bytes, at most 107; set XDG_RUNTIME_DIR, or --state-dir to");
    p.runtime = state;
    T_EQ(gpq_socket_find(&p, "/s", found, &e), GPQ_EUNUSABLE);
    expect_text("its path has 137 bytes, at most 107; set XDG_RUNTIME_DIR to a shorter path");
}

/* Q12 */
T_CASE(the_directory_of_the_socket)
{
    begin();
    struct gpq_places p = { .runtime = here };
    T_EQ(gpq_socket_make_directory(&p, &e), 0);
    expect_mode("gpudispatch", 0700);
    T_EQ(gpq_socket_make_directory(&p, &e), 0);
    T_EQ(chmod("gpudispatch", 0755), 0);
    T_EQ(gpq_socket_make_directory(&p, &e), GPQ_EUNUSABLE);
    expect_text("directory of the socket /");
    expect_text("gpudispatch: mode is 0755");
}

/* A listener at `path`. */
static int listen_at(const char *at)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    T_CMP(fd, >=, 0);
    T_CMP(strlen(at), <=, GPQ_SOCKET_PATH);
    memcpy(address.sun_path, at, strlen(at) + 1);
    T_EQ(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    T_EQ(listen(fd, 4), 0);
    return fd;
}

/* Whether a client with this XDG_RUNTIME_DIR reaches an agent. */
static int reaches(const char *runtime)
{
    struct gpq_places p = { .runtime = runtime };
    int fd, code = gpq_socket_connect(&p, real, &fd, &e);

    if (code == 0)
        T_EQ(close(fd), 0);
    return code;
}

/* Client and agent have different values of XDG_RUNTIME_DIR, one of them none. */
T_CASE(the_saved_path_of_the_socket)
{
    struct gpq_places agent = { 0 };
    char runtime[2048], at[GPQ_SOCKET_PATH + 1], saved[GPQ_SOCKET_PATH + 1];

    begin();
    T_EQ(gpq_statedir_make(in_here("s"), true, real, &e), 0);
    (void)snprintf(runtime, sizeof(runtime), "%s", in_here("r"));
    T_EQ(mkdir(runtime, 0700), 0);
    T_EQ(gpq_socket_saved(real, saved, &e), GPQ_ENOTFOUND);
    for (int i = 0; i < 2; i++) {
        agent.runtime = i ? runtime : NULL;
        T_EQ(gpq_socket_find(&agent, real, at, &e), 0);
        T_EQ(gpq_socket_make_directory(&agent, &e), 0);
        T_EQ(reaches(runtime), GPQ_ENOTFOUND);
        expect_text("no agent listens");
        int fd = listen_at(at);
        T_EQ(reaches(i ? NULL : runtime), GPQ_ENOTFOUND);
        T_EQ(gpq_socket_save(real, at, &e), 0);
        T_EQ(gpq_socket_saved(real, saved, &e), 0);
        T_TEXT(saved, at);
        T_EQ(reaches(NULL), 0);
        T_EQ(reaches(runtime), 0);
        T_EQ(reaches("/nowhere"), 0);
        T_EQ(close(fd), 0);
        T_EQ(reaches(NULL), GPQ_ENOTFOUND);
        gpq_socket_forget(real, "/another");
        T_EQ(gpq_socket_saved(real, saved, &e), 0);
        gpq_socket_forget(real, at);
        T_EQ(gpq_socket_saved(real, saved, &e), GPQ_ENOTFOUND);
        T_EQ(unlink(at), 0);
    }
}

T_CASE(a_saved_path_that_is_none)
{
    static const char long_path[GPQ_SOCKET_PATH + 2] = "/";
    static const struct {
        const char *data;
        size_t size;
    } wrong[] = { { "", 0 }, { "relative", 8 }, { "/a\0b", 4 }, { long_path, sizeof(long_path) } };
    char saved[GPQ_SOCKET_PATH + 1] = "unchanged";

    begin();
    T_EQ(gpq_statedir_make(in_here("s"), true, real, &e), 0);
    for (size_t i = 0; i < T_LENGTH(wrong); i++) {
        int fd = open("s/socket-path", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        T_EQ(write(fd, wrong[i].data, wrong[i].size), wrong[i].size);
        T_EQ(close(fd), 0);
        T_EQ(gpq_socket_saved(real, saved, &e), GPQ_EUNUSABLE);
        expect_text("s/socket-path: not the path of a socket; remove the file");
        T_TEXT(saved, "unchanged");
        T_EQ(reaches(NULL), GPQ_ENOTFOUND);
    }
}

static void listen_as_nobody(void)
{
    (void)listen_at("r/gpudispatch/socket");
    T_EQ(chmod("r/gpudispatch/socket", 0666), 0);
}

/* Q12: a client speaks with no other user, wherever the saved path leads. */
T_CASE(a_listener_of_another_user)
{
    begin();
    T_EQ(gpq_statedir_make(in_here("s"), true, real, &e), 0);
    T_EQ(mkdir("r", 0777), 0);
    T_EQ(mkdir("r/gpudispatch", 0777), 0);
    T_EQ(chmod("r/gpudispatch", 0777), 0);
    pid_t pid;
    int ready[2], go[2], fd;
    if (geteuid() != 0)
        t_skip("needs root, which can become another user");
    T_EQ(chmod(".", 0755), 0);
    T_EQ(pipe2(ready, O_CLOEXEC), 0);
    T_EQ(pipe2(go, O_CLOEXEC), 0);
    pid = fork();
    if (!pid) {
        if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
            setresuid(NOBODY, NOBODY, NOBODY))
            _exit(77);
        listen_as_nobody();
        T_EQ(write(ready[1], "x", 1), 1);
        T_EQ(close(go[1]), 0);
        (void)!read(go[0], ready, 1);
        _exit(0);
    }
    T_EQ(close(ready[1]), 0);
    char byte;
    if (read(ready[0], &byte, 1) != 1)
        t_skip("this machine does not let root become another user");
    struct gpq_places p = { 0 };
    T_EQ(gpq_socket_save(real, in_here("r/gpudispatch/socket"), &e), 0);
    T_EQ(gpq_socket_connect(&p, real, &fd, &e), GPQ_EUNUSABLE);
    expect_text("its listener has uid 65534, expected 0; set XDG_RUNTIME_DIR");
    T_EQ(close(go[1]), 0);
    T_EQ(waitpid(pid, NULL, 0), pid);
    T_EQ(close(go[0]), 0);
    T_EQ(close(ready[0]), 0);
}
