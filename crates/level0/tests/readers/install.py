"""Makes a virtual environment with the independent readers, once: install.py FOLDER

Prints the path of its Python. Exits with 77 where that cannot be done on this machine.
"""

import pathlib
import subprocess
import sys
import venv

LIBERA = "libera-utils==2.2.1"
CANNOT = 77


def main(folder: pathlib.Path) -> None:
    python = folder / "bin" / "python"
    wanted = pathlib.Path(__file__).with_name("requirements.txt").read_text() + LIBERA
    done = folder / "installed.txt"
    if not (done.exists() and done.read_text() == wanted):
        try:
            venv.create(folder, clear=True, with_pip=True)
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            requirements = str(pathlib.Path(__file__).with_name("requirements.txt"))
            subprocess.run([*pip, "--requirement", requirements], check=True, stdout=sys.stderr)
            subprocess.run([*pip, "--no-deps", LIBERA], check=True, stdout=sys.stderr)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"cannot install the readers: {error}", file=sys.stderr)
            sys.exit(CANNOT)
        done.write_text(wanted)
    print(python)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
