"""The instructions that Fairlead itself gives to a model: how to work, and as which agent."""
