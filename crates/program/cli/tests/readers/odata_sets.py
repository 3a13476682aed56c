"""Reads both OData services of a node by their schemas with odatapy: odata_sets.py BASE TOKEN CA

Prints one JSON object: what it finds of products by name, and of sessions by SessionId.
"""

import datetime
import hashlib
import json
import ssl
import sys

import httpx
from odatapy.client import EdmEnabledODataClient, Field, and_
from odatapy.client.transport import HttpxTransport

base, token, authority = sys.argv[1:]
context = ssl.create_default_context(cafile=authority)
http = httpx.Client(verify=context, headers={"Authorization": f"Bearer {token}"}, timeout=60)


def service(name):
    client = EdmEnabledODataClient(f"{base}/{name}/odata/v1", HttpxTransport(client=http))
    sets = client.get_service_document().entity_sets
    return client, [getattr(one, "name", one) for one in sets]


def values(entity):
    return {one.name: one.value for one in entity.properties}


def within(entity, name):
    [link] = [link for link in entity.navigation_links if link.title == name]
    return [values(one) for one in link.inline_entity_set.entities]


def digest(client, name, one, algorithm="sha256"):
    content = client.get_media(client.entity_uri(name, one["Id"]).append_value_segment()).content
    return len(content), hashlib.new(algorithm, content).hexdigest()


prip, sets = service("prip")
assert sets == ["Products"], sets
products = prip.entity_set_uri("Products")
past = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
asked = products.copy().filter(Field("PublicationDate").gt(past)).orderby("PublicationDate asc")
found = {}
for entity in prip.iter_entities(asked.top(1000).expand("Attributes")):
    one = values(entity)
    size, md5 = digest(prip, "Products", one, "md5")
    sums = {entry["Algorithm"]: entry["Value"] for entry in map(values, one["Checksum"])}
    assert (size, md5) == (one["ContentLength"], sums["MD5"]), one
    assert isinstance(one["PublicationDate"], datetime.datetime), one
    attributes = {entry["Name"]: entry["Value"] for entry in within(entity, "Attributes")}
    again = values(prip.get_entity(prip.entity_uri("Products", one["Id"]).select("Id", "Name")))
    assert again == {"Id": one["Id"], "Name": one["Name"]}, again
    found[one["Name"]] = {"sha256": sums["SHA256"], "mission": attributes["platformShortName"]}
assert prip.get_count(products.copy().append_count_segment()) == len(found)
named = and_(Field("Name").startswith("x-"), Field("Online").eq(True))
assert list(prip.iter_entities(products.copy().filter(named))) == []

cadip, sets = service("cadip")
assert sets == ["Sessions", "Files"], sets
wanted = cadip.entity_set_uri("Sessions").filter(Field("Retransfer").eq(False))
sessions = {}
for entity in cadip.iter_entities(wanted.expand("QualityInfo", "Files").orderby("SessionId asc")):
    one = values(entity)
    [quality], files = within(entity, "QualityInfo"), within(entity, "Files")
    for file in files:
        assert digest(cadip, "Files", file)[0] == file["Size"], file
    assert quality["TotalVolume"] == sum(file["Size"] for file in files)
    assert quality["TotalChunks"] == len(files)
    sessions[one["SessionId"]] = {"frames": quality["DataTFs"], "satellite": one["Satellite"]}
json.dump({"products": found, "sessions": sessions}, sys.stdout)
