"""Reads a STAC API with pystac-client, and prints what it has found as JSON.

Its documents are checked with stac-pydantic's models, and against the schemas of STAC 1.1 that
pystac brings along. Those of the extensions are nowhere without a network.
"""

import json
import sys

import requests
from pystac.validation.local_validator import LocalValidator
from pystac_client import Client
from stac_pydantic import Collection, Item
from stac_pydantic.api import LandingPage

root, token = sys.argv[1:]
headers = {"Authorization": f"Bearer {token}"}

SCHEMAS = "https://schemas.stacspec.org/v1.1.0"
validator = LocalValidator()


def valid(kind, document):
    schema = f"{SCHEMAS}/{kind}-spec/json-schema/{kind}.json"
    errors = [error.message for error in validator._validate_from_local(schema, document)]
    assert errors == [], (errors, document)
    return document


wrong = {"type": "Catalog", "stac_version": "1.1.0", "id": 7, "description": "x", "links": []}
schema = f"{SCHEMAS}/catalog-spec/json-schema/catalog.json"
assert list(validator._validate_from_local(schema, wrong)), "the validator refuses nothing"
landing = valid("catalog", requests.get(root, headers=headers, timeout=60).json())
LandingPage.model_validate(landing)
client = Client.open(root, headers=headers)
for collection in client.get_collections():
    found = requests.get(f"{root}/collections/{collection.id}", headers=headers, timeout=60).json()
    Collection.model_validate(valid("collection", found))

by_page = [item.id for item in client.search(limit=1).items()]
by_search, files = [], []
for item in client.search(method="GET", limit=100, sortby=["-published"]).items():
    own = requests.get(item.get_self_href(), headers=headers, timeout=60).json()
    Item.model_validate(valid("item", own))
    by_search.append(item.id)
    for name, asset in item.assets.items():
        reply = requests.head(asset.href, headers=headers, timeout=60)
        assert reply.status_code == 200, (asset.href, reply.status_code)
        assert int(reply.headers["content-length"]) == asset.extra_fields["file:size"]
        files.append(name)
none = client.search(filter={"op": "=", "args": [{"property": "mission"}, "none"]})
assert list(none.items()) == []
print(json.dumps({"by_page": by_page, "by_search": by_search, "files": files}))
