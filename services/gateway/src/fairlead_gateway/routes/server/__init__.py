"""Routes of the server itself: health, catalogs, documents, outputs."""
