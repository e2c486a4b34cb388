"""The way to a first answer: finds keys and local servers, writes a configuration, tries it."""
