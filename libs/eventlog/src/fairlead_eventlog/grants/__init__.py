"""Who may use which subject of NATS: grants as data, and the server configuration made from them."""
