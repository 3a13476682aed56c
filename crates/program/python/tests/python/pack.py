"""Makes a wheel of the module that the tests were built with: pack.py LIBRARY VERSION FOLDER

Prints its path. What `maturin` makes of the same package holds the same files (`make wheel`); here nothing is built again.
"""

import base64
import hashlib
import pathlib
import sys
import sysconfig
import zipfile

PACKAGE = pathlib.Path(__file__).parents[2] / "python" / "skyhaul"


def pack(library: pathlib.Path, version: str, folder: pathlib.Path) -> pathlib.Path:
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag = f"cp311-abi3-{platform}"
    info = f"skyhaul-{version}.dist-info"
    files = {f"skyhaul/{path.name}": path.read_bytes() for path in PACKAGE.iterdir() if path.is_file()}
    files["skyhaul/_skyhaul.abi3.so"] = library.read_bytes()
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: skyhaul\nVersion: {version}\n".encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = "".join(f"{name},sha256={digest(body)},{len(body)}\n" for name, body in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"skyhaul-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return wheel


def digest(body: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    print(pack(pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])))
