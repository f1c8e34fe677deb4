# Each target sets up .venv by itself. PYTHON, MLX (cpu, cuda12, cuda13) and ARGS may be given.
PYTHON ?= python3
MLX ?= cpu
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

.PHONY: lab test bench lessons clean

lab: $(VENV)/.lab-$(MLX)
	$(BIN)/muser-viz lab notebooks $(ARGS)

test: $(VENV)/.test-$(MLX)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest $(ARGS)
	$(BIN)/pytest --nbval notebooks -p no:randomly

bench: $(VENV)/.lab-$(MLX)
	$(BIN)/python tests/bench.py $(ARGS)

# Execute every lesson and store what it printed and drew.
lessons: $(VENV)/.test-$(MLX)
	$(BIN)/python tests/store_lessons.py $(ARGS)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# mlx-cpu and mlx-cuda-* own the same library, so a CUDA setup takes mlx-cpu away first.
$(VENV)/.lab-$(MLX): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-compile --editable .
ifneq ($(MLX),cpu)
	$(BIN)/python -m pip uninstall --quiet --yes mlx mlx-cpu
	$(BIN)/python -m pip install --quiet --no-compile "mlx[$(MLX)]"
endif
	touch $@

$(VENV)/.test-$(MLX): $(VENV)/.lab-$(MLX)
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[test]'
	touch $@

clean:
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
