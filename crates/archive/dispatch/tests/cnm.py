# Reads a JSON list of texts, and prints a list: of each text whether it fits the schema that the
# command line names, by the package jsonschema. Ends with 77 where that is not installed.
import json
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    sys.exit(77)

with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
Draft202012Validator.check_schema(schema)
validator = Draft202012Validator(schema)
print(json.dumps([validator.is_valid(json.loads(text)) for text in json.load(sys.stdin)]))
