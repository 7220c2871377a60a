# make demo: τ² rollouts through real NeMo Gym servers, on a laptop. make test: the whole test suite.
# Both make their environment in .venv from nothing but a Python 3.12 or 3.13 somewhere on the machine.

VENV ?= .venv
BIN := $(VENV)/bin
OUTPUT ?= runs/demo
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-gym-line test-slow test-browser lint clean

demo: $(VENV)/.ready
	rm -rf $(OUTPUT)
	$(BIN)/nemo-tau2 rollout --domain all --split train --limit 4 --group-size 4 --backend gym --output $(OUTPUT)

test: $(VENV)/.ready
	$(BIN)/python -m pytest
	$(BIN)/python -m pytest -m "gym and not slow"

# What differs between NeMo Gym lines: the servers, end to end, and everything they import.
test-gym-line: $(VENV)/.ready
	$(BIN)/python -m pytest tests/gym tests/tau2 tests/rollouts -m "not slow and not nemo_rl"

test-slow: $(VENV)/.ready
	$(BIN)/python -m pytest -m "slow and not nemo_rl and not browser"

test-browser: $(VENV)/.ready
	$(BIN)/python -m pytest -m browser

lint: $(VENV)/.ready
	$(BIN)/ruff check .

$(VENV)/.ready: setup.cfg pyproject.toml tools/find_python
	python=$$(PYTHON="$(PYTHON)" tools/find_python) && "$$python" -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info
