"""`fairlead top`: what all sessions do now, on one screen."""
