"""What a deployment needs before its first start: keys, certificates and passwords."""
