"""The chapter's planes under the real model's code, ``mlx_lm.models.muse_glimmer`` (§15.10)."""
