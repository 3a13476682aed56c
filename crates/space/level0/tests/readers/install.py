"""Makes a virtual environment with the independent readers, once: install.py FOLDER [REQUIREMENTS]

Of another list of requirements, what that names. Prints the path of its Python. Exits with 77 where that cannot be done on this machine. Several tests may ask at once:
one installs, the others wait for it.
"""

import fcntl
import pathlib
import subprocess
import sys
import venv

REQUIREMENTS = pathlib.Path(__file__).with_name("requirements.txt")
CANNOT = 77


def install(folder: pathlib.Path, requirements: pathlib.Path) -> None:
    wanted = requirements.read_text()
    done = folder / "installed.txt"
    if done.exists() and done.read_text() == wanted:
        return
    venv.create(folder, clear=True, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--requirement", str(requirements)], check=True, stdout=sys.stderr)
    done.write_text(wanted)


def main(folder: pathlib.Path, requirements: pathlib.Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            install(folder, requirements)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"cannot install what {requirements.parent.name}/{requirements.name} names: {error}", file=sys.stderr)
            sys.exit(CANNOT)
    print(folder / "bin" / "python")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else REQUIREMENTS)
