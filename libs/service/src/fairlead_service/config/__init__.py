"""Configuration: `fairlead.toml` and the environment as frozen values."""
