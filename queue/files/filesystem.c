/* SPDX-License-Identifier: MIT */
/* filesystem.c - the kind of a file system, and how much space it has. */
#include "queue/files/filesystem.h"

#include <errno.h>
#include <stddef.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

/* The numbers of linux/magic.h and of the modules' own headers, which are not installed. */
static const struct {
    uint32_t magic;
    const char *name;
} networks[] = {
    { 0x00006969, "NFS" },
    { 0x0000517b, "SMB" },
    { 0xff534d42, "CIFS" },
    { 0xfe534d42, "SMB2" },
    { 0x65735546, "FUSE (sshfs and others)" },
    { 0x01021997, "9P" },
    { 0x00c36400, "Ceph" },
    { 0x0bd00bd0, "Lustre" },
    { 0x5346414f, "AFS" },
    { 0x6b414653, "AFS" }, /* the kernel's own */
    { 0x47504653, "GPFS" },
    { 0x19830326, "BeeGFS" },
    { 0x20030528, "OrangeFS" },
    { 0xaad7aaea, "PanFS" },
    { 0x01161970, "GFS2" },
    { 0x7461636f, "OCFS2" },
    { 0x73757245, "Coda" },
    { 0x0000564c, "NCP" },
    { 0x786f4256, "VirtualBox shared folder" },
};

const char *gpq_network_filesystem(uint64_t magic)
{
    /* f_type is signed, and as wide as long: CIFS is negative on 32 bits. */
    for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++)
        if (networks[i].magic == (uint32_t)magic)
            return networks[i].name;
    return NULL;
}

int gpq_filesystem_look(const char *path, const char **ret_name)
{
    struct statfs fs;

    while (statfs(path, &fs))
        if (errno != EINTR)
            return -errno;
    *ret_name = gpq_network_filesystem((uint64_t)fs.f_type);
    return 0;
}

int gpq_space_look(const char *path, struct gpq_space *ret)
{
    struct statvfs fs;

    while (statvfs(path, &fs))
        if (errno != EINTR)
            return -errno;
    ret->bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    ret->inodes = fs.f_files ? fs.f_favail : UINT64_MAX; /* Btrfs has 0 files */
    return 0;
}
