"""Reads a store of S3 with boto3, and prints what it has found as JSON: s3.py ENDPOINT FOLDER"""

import hashlib
import json
import pathlib
import sys
import urllib.request

import boto3
from botocore.client import Config
from botocore.exceptions import ClientError

endpoint, folder = sys.argv[1:]


config = Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1})
usual = {"endpoint_url": endpoint, "region_name": "eu-north-1", "config": config}


def client(**further):
    return boto3.client("s3", **usual, **further)


def refused(code, call, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        found = error.response["Error"]["Code"]
        assert found == code, (found, code, error.response)
        return error.response
    raise AssertionError(f"{code} was not said")


s3 = client()
buckets = [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]
objects = {}
for bucket in buckets:
    s3.head_bucket(Bucket=bucket)
    assert not s3.get_bucket_location(Bucket=bucket)["LocationConstraint"]
    assert "Status" not in s3.get_bucket_versioning(Bucket=bucket)
    found, keys = [], []
    for call, into, size in [("list_objects_v2", found, 2), ("list_objects", keys, 3)]:
        pages = s3.get_paginator(call).paginate(Bucket=bucket, PaginationConfig={"PageSize": size})
        for page in pages:
            into += page.get("Contents", [])
    keys = [entry["Key"] for entry in keys]
    assert keys == [entry["Key"] for entry in found] == sorted(keys), keys
    # By folders, as browsers show them.
    below, prefixes = [], [""]
    while prefixes:
        prefix = prefixes.pop()
        shown = s3.list_objects_v2(Bucket=bucket, Prefix=prefix, Delimiter="/")
        below += [entry["Key"] for entry in shown.get("Contents", [])]
        prefixes += [entry["Prefix"] for entry in shown.get("CommonPrefixes", [])]
    assert sorted(below) == keys, below
    for entry in found:
        key = entry["Key"]
        head = s3.head_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED")
        # boto3 compares the body with the checksum that the answer has.
        body = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        assert len(body) == head["ContentLength"] == entry["Size"], key
        assert head["ETag"] == entry["ETag"] and "ChecksumSHA256" in head, head
        part = s3.get_object(Bucket=bucket, Key=key, Range="bytes=-7", IfMatch=head["ETag"])
        assert part["Body"].read() == body[-7:], key
        whole = s3.head_object(Bucket=bucket, Key=key, PartNumber=1)
        assert whole["ContentLength"] == len(body), whole
        name = pathlib.Path(folder, key.rsplit("/", 1)[1])
        s3.download_file(bucket, key, str(name))
        assert name.read_bytes() == body, key
        objects[key] = hashlib.sha256(body).hexdigest()
bucket, key = buckets[0], next(iter(objects))
wanted = {"Bucket": bucket, "Key": key}
address = s3.generate_presigned_url("get_object", Params=wanted, ExpiresIn=60)
with urllib.request.urlopen(address) as answer:
    assert hashlib.sha256(answer.read()).hexdigest() == objects[key]
refused("NoSuchBucket", s3.list_objects_v2, Bucket="none")
refused("NoSuchKey", s3.get_object, Bucket=bucket, Key="none")
refused("404", s3.head_object, Bucket=bucket, Key="none/a-v1/b")
refused("PreconditionFailed", s3.get_object, Bucket=bucket, Key=key, IfMatch='"x"')
refused("InvalidRange", s3.get_object, Bucket=bucket, Key=key, Range="bytes=99999999999-")
refused("NotImplemented", s3.get_bucket_acl, Bucket=bucket)
refused("AccessDenied", s3.put_object, Bucket=bucket, Key="a", Body=b"a")
refused("AccessDenied", s3.delete_object, Bucket=bucket, Key=key)
refused("AccessDenied", s3.create_bucket, Bucket="other")
wrong = client(aws_access_key_id="SKY" + "0" * 24, aws_secret_access_key="x" * 40)
refused("InvalidAccessKeyId", wrong.list_buckets)
mine = boto3.Session().get_credentials()
forged = client(aws_access_key_id=mine.access_key, aws_secret_access_key="x" * 40)
said = refused("SignatureDoesNotMatch", forged.list_buckets)
assert said["ResponseMetadata"]["RequestId"], said
print(json.dumps({"buckets": buckets, "objects": objects}))
