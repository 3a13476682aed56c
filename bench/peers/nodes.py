"""Nodes that run while something is measured."""

import json
import subprocess
import time

# Seconds for a step.
PATIENCE = 300


def status(skyhaul, folder, config):
    """What a node says of itself; nothing while it does not answer."""
    answer = subprocess.run([skyhaul, "status", "--config", config, "--json"], cwd=folder,
                            capture_output=True, text=True)
    return json.loads(answer.stdout) if answer.returncode == 0 else {}


def until(look, pause=0.2, patience=PATIENCE):
    """Looks again and again, and returns what is found at last."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(pause)
    raise SystemExit("the nodes do not come so far")
