"""Libraries to link with, in place of this machine's glibc: names of functions with the versions that glibc 2.28 gave them.

usage: stubs.py FOLDER COMPILER...

A program that is linked here asks for the newest version of each function, and a machine with an older glibc refuses it. What is
linked with these asks for the old versions, which every later glibc keeps, in the libraries where they were then. Prints the
files, in the order in which they are to be linked.
"""

import subprocess
import sys
from pathlib import Path

# From glibc's own lists of symbols (sysdeps/unix/sysv/linux/x86_64/64/*.abilist, tag glibc-2.28). The loader asks whether a library
# has a version, and looks for the function everywhere: __libc_start_main, which is libc's, can be asked for with another's.
LIBRARIES = {
    "libdl.so.2": {
        "GLIBC_2.2.5": "dladdr dlclose dlerror dlopen dlsym dlvsym __libc_start_main",
        "GLIBC_2.3.3": "dladdr1 dlinfo",
        # only newer ones have it, and it is asked for by weak references: without a version, or the older ones would refuse
        None: "_dl_find_object",
    },
    "libpthread.so.0": {
        "GLIBC_2.2.5": "pthread_create pthread_detach pthread_getspecific pthread_join pthread_key_create pthread_key_delete "
        "pthread_kill pthread_once pthread_setspecific pthread_sigmask",
        "GLIBC_2.12": "pthread_setname_np",
        "GLIBC_2.3.3": "pthread_timedjoin_np",
    },
}


def build(path, soname, versions, compiler):
    source, script = path.with_suffix(".c"), path.with_suffix(".map")
    source.write_text("".join(f"void {name}(void) {{}}\n" for names in versions.values() for name in names.split()))
    script.write_text("".join(f"{version} {{ {'; '.join(names.split())}; }};\n" for version, names in versions.items() if version))
    options = ["-shared", "-fPIC", "-nostdlib", "-fno-builtin", "-w", f"-Wl,-soname,{soname}", f"-Wl,--version-script={script}"]
    subprocess.run([*compiler, *options, "-o", path, source], check=True)
    return path


def main():
    folder, compiler = Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    for soname, versions in LIBRARIES.items():
        print(build(folder / f"old-{soname.split('.')[0]}.so", soname, versions, compiler))


if __name__ == "__main__":
    main()
