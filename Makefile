# Each target sets up .venv by itself. PYTHON, MLX (cpu, cuda12, cuda13) and ARGS may be given.
PYTHON ?= python3
MLX ?= cpu
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: lab test bench lessons chromium clean

lab: $(VENV)/.lab-$(MLX)
	$(BIN)/muser-viz lab notebooks $(ARGS)

test: $(VENV)/.test-$(MLX) chromium
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 --dist loadfile $(ARGS)
	$(BIN)/pytest --nbval notebooks -p no:randomly

bench: $(VENV)/.test-$(MLX) chromium
	$(BIN)/python tests/bench.py $(ARGS)

# Execute every lesson and store what it printed and drew.
lessons: $(VENV)/.test-$(MLX)
	$(BIN)/python tests/store_lessons.py $(ARGS)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# mlx-cpu and mlx-cuda-* own the same library, so a CUDA setup takes mlx-cpu away last, and puts its own there.
ifeq ($(MLX),cpu)
own_mlx := true
else
own_mlx := $(BIN)/python -m pip uninstall --quiet --yes mlx mlx-cpu && \
  $(BIN)/python -m pip install --quiet "mlx[$(MLX)]"
endif

$(VENV)/.lab-$(MLX): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[model]'
	$(own_mlx)
	touch $@

$(VENV)/.test-$(MLX): $(VENV)/.lab-$(MLX)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	$(own_mlx)
	touch $@

# Debian's Chromium for the browser tests, where there is none and apt-get can bring it; else they say why they skip.
chromium:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	command -v apt-get >/dev/null || exit 0; \
	$(SUDO) apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	$(SUDO) apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core >/dev/null

clean:
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
