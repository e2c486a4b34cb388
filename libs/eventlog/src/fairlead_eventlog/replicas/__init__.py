"""What readers and writers of replicas need: patience, and the order of commits."""
