"""Checks docs/protocol with what Python has for it, and the JSON Schemas against the decoder: python schemas.py CORPUS

CORPUS is what TestCorpus of the package wire writes.
"""

import json
import sys
from pathlib import Path

from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol"


def main(corpus: str) -> int:
    validators = {}
    for name in ("query", "answer"):
        schema = json.loads((PROTOCOL / f"{name}.schema.json").read_text())
        Draft202012Validator.check_schema(schema)
        validators[name] = Draft202012Validator(schema)
    validate(json.loads((PROTOCOL / "openapi.json").read_text()))
    judged = {True: 0, False: 0}
    faults = 0
    with open(corpus, encoding="utf-8") as lines:
        for line in lines:
            said = json.loads(line)
            says = validators[said["schema"]].is_valid(json.loads(said["body"]))
            judged[says] += 1
            if says != said["accepted"] and not said.get("beyond"):
                print(f"jsonschema says {says}, geniemq {said['accepted']}: {said['body'][:1000]}", file=sys.stderr)
                faults += 1
    print(f"Python: {judged[True]} documents accepted and {judged[False]} refused as by geniemq, {faults} faults")
    return 1 if faults or not all(judged.values()) else 0


sys.exit(main(sys.argv[1]))
