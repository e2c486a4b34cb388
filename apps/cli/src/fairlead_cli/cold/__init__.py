"""Cold storage: sessions that leave the log as verified files, and come back under their own ids."""
