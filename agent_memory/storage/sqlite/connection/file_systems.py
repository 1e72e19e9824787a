"""Tells network drives, which other machines may reach, from drives of this machine alone.

The file is not opened for that. A folder that a program copies to other machines, such as Dropbox's
on Linux, is local to the system: that is not noticed.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Final

_MOUNTS: Final = Path("/proc/self/mountinfo")
_REMOTE: Final = frozenset(
    """9p acfs afp afs beegfs ceph cifs coda davfs drvfs fakeowner fhgfs gfs gfs2 glusterfs gpfs
    lustre ncp ncpfs nfs nfs4 ocfs2 orangefs osxfs panfs prl_fs pvfs2 smb2 smb3 smbfs vboxsf
    virtiofs vmhgfs webdav""".split()
)
"""Linux file systems that other machines, or the host of this virtual one, may write to as well."""
_LOCAL_FUSE: Final = frozenset(
    """bindfs cryfs encfs ext2 ext4 fuse-overlayfs gocryptfs lxcfs mergerfs ntfs ntfs-3g overlayfs
    portal securefs unionfs unionfs-fuse veracrypt""".split()
)
"""FUSE file systems that keep their files on this machine. Most others do not."""
_COPY_ON_WRITE: Final = frozenset("bcachefs btrfs nilfs2".split())
"""Linux file systems that need new space for each change of a mapped page."""
_SHARED_PAGE_BYTES: Final = 4096
"""SQLite allocates its shared memory by writing one byte in each stretch of this length."""
_ESCAPED: Final = re.compile(rb"\\([0-7]{3})")
_SYNCED: Final = (
    ("Library", "Mobile Documents", "iCloud Drive"),
    ("Library", "CloudStorage", "a cloud's folder"),
)
"""Where macOS keeps what it copies to other machines."""
_MACOS_LOCAL: Final = 0x1000
_WINDOWS_REMOTE: Final = 4


def copies_on_write(path: Path) -> bool:
    """Return whether every change of a file, or of memory mapped from it, needs new space.

    If so, a full disk kills a process that writes into shared memory, by SIGBUS. ``path`` is as for
    ``remote_kind``.
    """
    if sys.platform != "linux":
        return False
    try:
        folder = _existing_folder(path)
        kind = _mount_kind(_MOUNTS.read_bytes(), folder / path.name, _device(folder))
    except OSError:
        return False
    return kind in _COPY_ON_WRITE


def has_short_blocks(path: Path) -> bool:
    """Return whether SQLite's shared memory would have holes, which a full disk cannot fill.

    Writing into one kills a process by SIGBUS.
    """
    try:
        return os.statvfs(_existing_folder(path)).f_bsize < _SHARED_PAGE_BYTES
    except (OSError, AttributeError):  # Windows has no such call
        return False


def free_bytes(path: Path) -> int:
    """Return the free space on a path's disk, in some 2 µs."""
    status = os.statvfs(_existing_folder(path))
    return status.f_bavail * status.f_frsize


def _existing_folder(path: Path) -> Path:
    return next((folder for folder in path.parents if folder.exists()), path)


def remote_kind(path: Path) -> str | None:
    """Return the type of the drive that a path is on, such as ``nfs4``; ``None`` for a local one.

    The path is absolute, without links; it need not exist. A drive of unknown type counts as local.
    This takes some 60 µs, so nothing is cached: drives come and go under one number.
    """
    path = next((folder for folder in path.parents if folder.exists()), path) / path.name
    try:
        if sys.platform == "darwin":
            return _on_macos(path)
        if os.name == "nt":
            return _on_windows(path)
        return kind_in(_MOUNTS.read_bytes(), path, _device(path.parent))
    except OSError:
        return None


# Linux --------------------------------------------------------------------------------------------


def _device(folder: Path) -> str:
    device = os.stat(folder).st_dev  # noqa: PTH116 - 1 µs
    return f"{os.major(device)}:{os.minor(device)}"


def kind_in(mounts: bytes, path: Path, device: str) -> str | None:
    """Return the result of ``_mount_kind`` if other machines may reach the drive, else ``None``."""
    kind = _mount_kind(mounts, path, device)
    return kind if is_remote(kind) else None


def _mount_kind(mounts: bytes, path: Path, device: str) -> str:
    """Find the type of a path's drive in the text of ``/proc/self/mountinfo``; "" if there is none.

    ``device`` is the number of the path's drive, ``major:minor``. Some file systems (btrfs) report
    another one to ``stat`` than is listed there: then the longest mount point decides, and among
    equal ones the last.
    """
    kind_of_drive = ""
    longest = -1
    place = os.fsencode(path)
    for line in mounts.splitlines():
        before, _, after = line.partition(b" - ")
        fields, kind = before.split(b" ", 5), after.partition(b" ")[0].decode(errors="replace")
        if len(fields) < 6 or not kind:
            continue
        if fields[2] == device.encode():
            return kind
        mount = _ESCAPED.sub(lambda match: bytes([int(match[1], 8)]), fields[4])
        if len(mount) >= longest and _is_under(place, mount):
            kind_of_drive, longest = kind, len(mount)
    return kind_of_drive


def is_remote(kind: str) -> bool:
    """Return whether a Linux file system is one that this machine may share with others."""
    family, _, program = kind.partition(".")
    if family == "fuse":
        return program not in _LOCAL_FUSE
    return family in _REMOTE


def _is_under(place: bytes, mount: bytes) -> bool:
    return place == mount or place.startswith(mount.rstrip(b"/") + b"/")


# macOS, Windows -----------------------------------------------------------------------------------


def _on_macos(path: Path) -> str | None:
    if synced := synced_by(path):
        return synced
    import ctypes  # noqa: PLC0415 - 2 ms, which Linux is spared

    system = ctypes.CDLL(None, use_errno=True)
    # The struct of 2 KB with 64-bit inodes; on Intel the one with 32 bits has the plain name.
    statfs = getattr(system, "statfs$INODE64", None) or system.statfs
    answer = ctypes.create_string_buffer(4096)
    failed = statfs(ctypes.c_char_p(os.fsencode(path.parent)), answer)
    return None if failed else kind_in_statfs(answer.raw)


def synced_by(path: Path) -> str | None:
    """Return what copies a path to other machines, as far as macOS has a fixed place for it."""
    for folder, inner, name in _SYNCED:
        if (folder, inner) in zip(path.parts, path.parts[1:], strict=False):
            return name
    return None


def kind_in_statfs(answer: bytes) -> str | None:
    """Read the struct ``statfs`` of macOS: the flag of local drives, and the type's name."""
    flags = int.from_bytes(answer[64:68], sys.byteorder)
    kind = answer[72:88].partition(b"\0")[0].decode(errors="replace")
    return None if flags & _MACOS_LOCAL else kind or "an unknown type"


def _on_windows(path: Path) -> str | None:
    if path.drive.startswith("\\\\"):
        return "a network share"
    import ctypes  # noqa: PLC0415 - as above

    kind = ctypes.windll.kernel32.GetDriveTypeW(path.anchor)  # type: ignore[attr-defined]
    return "a network share" if kind == _WINDOWS_REMOTE else None
