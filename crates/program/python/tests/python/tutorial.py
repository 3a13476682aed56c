"""Runs a page: tutorial.py PAGE. Its `python` fences are one program, in order; what each prints must be what the `text`
fence below it shows. `$ skyhaul` lines of `console` fences are run before that, in the same folder."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys


def fences(page: str) -> list[tuple[str, str]]:
    found, info, body = [], None, []
    for line in page.splitlines():
        if line.startswith("```"):
            if info is None:
                info, body = line[3:], []
            else:
                found.append((info, "".join(f"{one}\n" for one in body)))
                info = None
        elif info is not None:
            body.append(line)
    return found


def main(page: pathlib.Path) -> None:
    names: dict[str, object] = {"__name__": "__tutorial__"}
    shown, programs = "", 0
    for info, body in fences(page.read_text()):
        if info == "console":
            for line in body.splitlines():
                if line.startswith("$ skyhaul "):
                    command = [os.environ["SKYHAUL_PROGRAM"], *line.split()[2:]]
                    subprocess.run(command, check=True, capture_output=True)
        elif info == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(body, f"{page.name}, program {programs + 1}", "exec"), names)
            shown, programs = printed.getvalue(), programs + 1
        elif info == "text" and programs:
            assert shown == body, f"program {programs} prints\n{shown}and the page shows\n{body}"
            shown = ""
        assert not shown or info == "python", f"the page does not show what program {programs} prints:\n{shown}"
    assert programs, "the page has no program"


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
