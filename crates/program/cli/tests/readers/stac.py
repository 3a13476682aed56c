"""Reads a STAC API with pystac-client, checks its documents with stac-pydantic's models, and prints
what it has found as JSON."""

import json
import sys

import requests
from pystac_client import Client
from stac_pydantic import Collection, Item
from stac_pydantic.api import LandingPage

root, token = sys.argv[1:]
headers = {"Authorization": f"Bearer {token}"}

LandingPage.model_validate(requests.get(root, headers=headers, timeout=60).json())
client = Client.open(root, headers=headers)
for collection in client.get_collections():
    found = requests.get(f"{root}/collections/{collection.id}", headers=headers, timeout=60).json()
    Collection.model_validate(found)

by_page = [item.id for item in client.search(limit=1).items()]
by_search, files = [], []
for item in client.search(method="GET", limit=100, sortby=["-published"]).items():
    own = requests.get(item.get_self_href(), headers=headers, timeout=60).json()
    Item.model_validate(own)
    by_search.append(item.id)
    for name, asset in item.assets.items():
        reply = requests.head(asset.href, headers=headers, timeout=60)
        assert reply.status_code == 200, (asset.href, reply.status_code)
        assert int(reply.headers["content-length"]) == asset.extra_fields["file:size"]
        files.append(name)
none = client.search(filter={"op": "=", "args": [{"property": "mission"}, "none"]})
assert list(none.items()) == []
print(json.dumps({"by_page": by_page, "by_search": by_search, "files": files}))
