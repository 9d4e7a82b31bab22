"""Signs and verifies cards with the Python SDK.

signing.py verify CARD JWKS            prints `ok`, or fails
signing.py sign CARD KEY ID ALGORITHM  prints the signed card
"""

import json
import pathlib
import sys

from a2a.types import AgentCard
from a2a.utils.signing import create_agent_card_signer, create_signature_verifier
from google.protobuf.json_format import MessageToJson, ParseDict
from jwt.api_jwk import PyJWK


def read(path):
    return json.loads(pathlib.Path(path).read_text())


def card_in(path):
    # As the SDK reads a card that it has fetched: what it does not know is passed over.
    return ParseDict(read(path), AgentCard(), ignore_unknown_fields=True)


def verify(card, jwks):
    keys = {key["kid"]: PyJWK.from_dict(key) for key in read(jwks)["keys"]}
    algorithms = sorted({key["alg"] for key in read(jwks)["keys"]})

    def find(kid, _jku):
        # PyJWT looks for the algorithm in the list, and then at the key itself.
        return keys[kid] if kid in keys else b"unknown"

    create_signature_verifier(find, algorithms)(card_in(card))
    print("ok")


def sign(card, key, kid, algorithm):
    header = {"alg": algorithm, "kid": kid, "typ": "JOSE"}
    signed = create_agent_card_signer(pathlib.Path(key).read_text(), header)(card_in(card))
    print(MessageToJson(signed))


{"verify": verify, "sign": sign}[sys.argv[1]](*sys.argv[2:])
