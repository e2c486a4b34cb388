"""Ask in five lines. `fairlead up --sim` runs in another terminal."""

from fairlead_client import Fairlead

with Fairlead() as fairlead:
    session = fairlead.create()
    print(fairlead.ask(session, "Say hello").text)
