"""Reads a node as European ground segments do: ground.py BASE TOKEN FOLDER COLLECTION

Prints one JSON object: by client, the SHA-256 of what it took, by the name of the product.
python-odata lists, and asks for single products, by the schema of the service; the driver for OData
of DRB takes products as nodes of a tree; eodag searches by type and time, and takes products to
files, by OData and by STAC.
"""

import datetime
import hashlib
import io
import json
import os
import pathlib
import sys

base, token, collection = sys.argv[1], sys.argv[2], sys.argv[4]
folder = pathlib.Path(sys.argv[3]).resolve()
UTC = datetime.timezone.utc
PROVIDERS = pathlib.Path(__file__).with_name("ground.yml").read_text()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def by_python_odata():
    import requests
    from odata import ODataService

    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {token}"
    service = ODataService(f"{base}/prip/odata/v1/", session=session, reflect_entities=True)
    kind = service.entities["Products"]
    since = datetime.datetime(2020, 1, 1, tzinfo=UTC)
    listed = service.query(kind).filter(kind.PublicationDate > since)
    listed = listed.filter(kind.Name.contains("-"))
    found = {}
    for one in listed.order_by(kind.PublicationDate.asc()):
        again = service.query(kind).get(one.Id)
        assert again.Name == one.Name
        address = f"{base}/prip/odata/v1/Products({one.Id})/$value"
        found[one.Name] = sha256(session.get(address, timeout=60).content)
    return found


def by_drb():
    from drb.drivers.odata import ODataQueryPredicate, ODataServiceNodeCSC
    from requests.auth import HTTPBasicAuth

    service = ODataServiceNodeCSC(f"{base}/prip/odata/v1", auth=HTTPBasicAuth("x", token))
    wanted = service[ODataQueryPredicate(filter="contains(Name,'-')", order="PublicationDate desc")]
    found = {}
    for nth in range(len(wanted)):
        node = wanted[nth]
        with node.get_impl(io.BytesIO) as stream:
            found[node.name] = sha256(stream.read())
        attributes = [child.name for child in node["Attributes"].children]
        assert "platformShortName" in attributes, attributes
    return found


def by_eodag():
    (folder / "providers").mkdir(parents=True)
    text = PROVIDERS.replace("BASE", base).replace("TOKEN", token)
    text = text.replace("COLLECTION", collection)
    (folder / "providers/skyhaul.yml").write_text(text)
    (folder / "collections.yml").write_text("level0:\n  title: Level-0\n")
    os.environ["EODAG_CFG_DIR"] = str(folder)
    os.environ["EODAG_PROVIDERS_CFG_DIR"] = str(folder / "providers")
    os.environ["EODAG_COLLECTIONS_CFG_FILE"] = str(folder / "collections.yml")
    os.environ["EODAG_EXT_COLLECTIONS_CFG_URI"] = ""
    from eodag import EODataAccessGateway, setup_logging

    setup_logging(0)
    gateway = EODataAccessGateway()
    found = {}
    for provider in ("skyhaul_prip", "skyhaul_stac"):
        taken = found.setdefault(f"eodag by {provider}", {})
        span = {"start": "2000-01-01", "end": "2100-01-01"}
        results = gateway.search(
            provider=provider, collection="level0", count=True, raise_errors=True, **span)
        assert results.number_matched == len(results) > 0, results
        for one in results:
            place = pathlib.Path(gateway.download(one, output_dir=str(folder / provider)))
            files = [path for path in place.rglob("*") if path.is_file()]
            taken[one.properties["id"]] = sorted(sha256(path.read_bytes()) for path in files)
    return found


json.dump({"python-odata": by_python_odata(), "drb": by_drb(), **by_eodag()}, sys.stdout)
