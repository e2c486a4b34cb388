"""What every Fairlead process needs: settings, logs, health, metrics, ids, shutdown."""
