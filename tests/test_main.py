"""The command line's manners: verbs load, help works, pipes may close."""

import subprocess
import sys

import pytest

from nemo_tau2.cli.main import VERBS, main


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb, capsys):
    with pytest.raises(SystemExit) as raised:
        main([verb, "--help"])
    assert raised.value.code == 0
    assert "Usage: nemo-tau2 " + verb in capsys.readouterr().out


def test_an_unknown_verb_exits_with_2(capsys):
    with pytest.raises(SystemExit) as raised:
        main(["rolout"])
    assert raised.value.code == 2


def test_a_reader_that_leaves_early_causes_no_traceback():
    code = "from nemo_tau2.cli.main import main; main(['gym-roots', '--absolute', 'tau2_all'])"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    process.wait()
