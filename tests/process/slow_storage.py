"""A library that makes storage slow on demand: preloaded into a process, it waits in its syncs.

Owns the C source and its building. While the folder named by SLOW_STORAGE holds a file `sync`, each
fsync and fdatasync waits 3 s first; a file `statvfs` is taken away by the first question for free
space that comes, which then hangs for 30 s. Nothing is slow without these files.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

SYNC_S, HANG_S = 3, 30
_SOURCE = f"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct statvfs;

static int ordered(const char *name, int take) {{
    const char *folder = getenv("SLOW_STORAGE");
    char path[4096];
    if (!folder) return 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return (take ? unlink(path) : access(path, F_OK)) == 0;
}}

#define REAL(name) ((int (*)()) dlsym(RTLD_NEXT, #name))

int fsync(int fd) {{ if (ordered("sync", 0)) sleep({SYNC_S}); return REAL(fsync)(fd); }}
int fdatasync(int fd) {{ if (ordered("sync", 0)) sleep({SYNC_S}); return REAL(fdatasync)(fd); }}

int statvfs(const char *path, struct statvfs *facts) {{
    if (ordered("statvfs", 1)) sleep({HANG_S});
    return REAL(statvfs)(path, facts);
}}
int statvfs64(const char *path, void *facts) {{
    if (ordered("statvfs", 1)) sleep({HANG_S});
    return REAL(statvfs64)(path, facts);
}}
"""


def build(folder: Path) -> Path:
    """Return the library; skips the test where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("slow storage is a C library, and there is no cc")
    source, library = folder / "slow_storage.c", folder / "slow_storage.so"
    source.write_text(_SOURCE)
    command = [compiler, "-shared", "-fPIC", "-w", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True, timeout=60)
    return library
