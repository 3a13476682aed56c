"""Makes a virtual environment for tests, once: install.py FOLDER [REQUIREMENTS] [WHEEL]

It holds the independent readers, or what another list of requirements names; a wheel, which ends
in .whl, is installed into it each time. Prints the path of its Python. Exits with 77 where that
cannot be done on this machine. Several tests may ask at once: one installs, the others wait.
"""

import fcntl
import importlib.util
import pathlib
import subprocess
import sys
import venv

REQUIREMENTS = pathlib.Path(__file__).with_name("requirements.txt")
CANNOT = 77
# A pip of the system saves making another in each environment.
HAS_PIP = importlib.util.find_spec("pip") is not None


def pip(python: pathlib.Path, *words: str) -> None:
    command = [sys.executable, "-m", "pip", "--python"] if HAS_PIP else []
    command += [str(python)] if HAS_PIP else [str(python), "-m", "pip"]
    # What pip would compile is compiled when it is imported, and most of it never is.
    command += ["--quiet", "--disable-pip-version-check", "install", "--no-compile", "--no-deps"]
    ran = subprocess.run(
        [*command, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if ran.returncode != 0:
        raise OSError((ran.stdout.strip() or f"pip exited with {ran.returncode}").splitlines()[-1])


def install(folder: pathlib.Path, requirements: pathlib.Path) -> None:
    wanted = requirements.read_text()
    done = folder / "installed.txt"
    if done.exists() and done.read_text() == wanted:
        return
    venv.create(folder, clear=True, with_pip=not HAS_PIP)
    pip(folder / "bin" / "python", "--requirement", str(requirements))
    done.write_text(wanted)


def main(folder: pathlib.Path, requirements: pathlib.Path, wheels: list[str]) -> None:
    python = folder / "bin" / "python"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            install(folder, requirements)
            for wheel in wheels:
                pip(python, "--force-reinstall", "--no-index", wheel)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"cannot install what {requirements.parent.name}/{requirements.name} names: {error}", file=sys.stderr)
            sys.exit(CANNOT)
    print(python)


if __name__ == "__main__":
    wheels = [word for word in sys.argv[2:] if word.endswith(".whl")]
    lists = [word for word in sys.argv[2:] if not word.endswith(".whl")]
    main(pathlib.Path(sys.argv[1]), pathlib.Path(lists[0]) if lists else REQUIREMENTS, wheels)
