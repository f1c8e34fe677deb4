"""The widgets: a module a view, its Python and its ESM side by side; ``stage`` is what all share."""
