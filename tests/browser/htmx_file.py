"""The bytes of htmx as the CDN serves them, from the npm registry. For tests only, never committed.

Fetched once into a cache folder, and used only if it has the digest that the page demands.
"""

import base64
import hashlib
import os
import subprocess
import tarfile
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from app.web.assets import Script

_FETCH_S = 120


def htmx_bytes(script: Script, folder: Path) -> bytes:
    """Return the file behind the script's address; AssertionError if it has another digest."""
    # https://host/npm/NAME@VERSION/FILE
    package, _, file = urlsplit(script.url).path.removeprefix("/npm/").partition("/")
    kept = folder / f"{package}-{Path(file).name}"
    if not kept.exists():
        _fetch(package, file, kept)
    body = kept.read_bytes()
    digest = base64.b64encode(hashlib.sha384(body).digest()).decode()
    assert f"sha384-{digest}" == script.integrity, (
        f"{file} of {package} in the registry has another digest than the page demands: {digest}"
    )
    return body


def _fetch(package: str, file: str, kept: Path) -> None:
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        command = ["npm", "pack", "--silent", package]
        done = subprocess.run(
            command, check=False, cwd=folder, capture_output=True, text=True, timeout=_FETCH_S
        )
        assert done.returncode == 0, f"{' '.join(command)} failed: {done.stderr}"
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as packed:
            content = packed.extractfile(f"package/{file}")
            assert content is not None, f"{package} has no {file}"
            part = Path(folder) / "part"
            part.write_bytes(content.read())
        os.replace(part, kept)  # noqa: PTH105 - two test processes may fetch at once
