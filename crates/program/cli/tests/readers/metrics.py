"""Reads both text forms of metrics with the parsers of Prometheus' Python client, and prints the
families that each has, and its figures."""

import json
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_classic

found = {}
for name, read in [("classic", read_classic), ("open", read_open)]:
    with open(f"{name}.txt", encoding="utf-8") as text:
        families = list(read(text.read()))
    figures = [[sample.name, sorted(sample.labels.items()), sample.value]
               for family in families for sample in family.samples]
    found[name] = {"families": sorted(family.name for family in families),
                   "figures": sorted(figures),
                   "documented": all(family.documentation for family in families)}
json.dump(found, sys.stdout)
