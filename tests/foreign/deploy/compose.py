"""Prints a Compose file as JSON, all of it checked against the specification."""

import sys

from compose_spec import PyCompose

with open(sys.argv[1]) as file:
    compose = PyCompose.from_yaml(file.read())
compose.validate()
print(compose.to_json())
