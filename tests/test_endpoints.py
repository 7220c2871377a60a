"""What the command line says of a model endpoint, and what it may not say."""

import pytest

from nemo_tau2.endpoints import endpoint_of, read_key
from nemo_tau2.errors import UserError


def test_flags_become_an_endpoint():
    endpoint = endpoint_of("user", (None, "http://h/v1", "m", '{"temperature": 0}'), "sk")
    assert (endpoint.url, endpoint.model, endpoint.sampling) == (
        "http://h/v1",
        "m",
        {"temperature": 0},
    )
    assert endpoint.api_key.get_secret_value() == "sk" and "sk" not in str(endpoint.describe())


@pytest.mark.parametrize("flags", [("scripted", None, None, None), (None, None, None, "{}")])
def test_a_role_without_a_url_is_scripted(flags):
    assert endpoint_of("user", flags, None) is None


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("scripted", "http://h", "m", None), "exclude each other"),
        ((None, "http://h", None, None), "--user-url and --user-model go together"),
        ((None, None, "m", None), "go together"),
        ((None, "h:8000", "m", None), "http://"),
        ((None, "http://h", "m", "{"), "--user-sampling is not JSON"),
        ((None, "http://h", "m", "[1]"), "must be a JSON object"),
    ],
)
def test_what_cannot_be(flags, said):
    with pytest.raises(UserError, match=said):
        endpoint_of("user", flags, None)


def test_a_key_is_the_first_line_of_its_file(tmp_path):
    (tmp_path / "key").write_text("sk-1 \nmore\n")
    assert read_key(tmp_path / "key") == "sk-1"
    assert read_key(None) is None


@pytest.mark.parametrize(
    ("content", "said"), [(None, "No such file"), (b"", "empty"), (b"\xff\n", "utf-8")]
)
def test_a_file_without_a_key(tmp_path, content, said):
    if content is not None:
        (tmp_path / "key").write_bytes(content)
    with pytest.raises(UserError, match=said):
        read_key(tmp_path / "key")
