"""fabricctl/schema.json, and whether the JSON output of a command is as it says."""
import functools
import json
import os

try:
    import jsonschema
except ImportError:  # a host that runs single tests without the packages
    jsonschema = None

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fabricctl", "schema.json")


@functools.cache
def schema():
    with open(PATH, encoding="utf-8") as file:
        return json.load(file)


@functools.cache
def validator(command):
    return jsonschema.Draft202012Validator(dict(schema(), **{"$ref": f"#/$defs/{command}"}))


def commands():
    return {name for name in schema()["$defs"] if not name.startswith("_")}


def checked(arguments, value):
    """The output of fabricctl with these arguments. AssertionError where the schema does not allow it."""
    command = next((word for word in arguments if word in commands()), None)
    if jsonschema is not None and command is not None and not any(word.startswith("--columns") for word in arguments):
        wrong = next(validator(command).iter_errors(value), None)
        if wrong is not None:
            raise AssertionError(f"fabricctl {' '.join(arguments)}: {wrong.json_path}: {wrong.message[-500:]}")
    return value
