"""Answer the permission that a tool call waits for, perhaps days later and from another program."""

from fairlead_client import Fairlead

READ = """[[sim: tool=read args='{"path":"/etc/hostname"}' ; answer="I have read it."]]"""

with Fairlead() as fairlead:
    session = fairlead.create()
    receipt = fairlead.prompt(session, READ)
    for event in fairlead.follow(session, after=receipt.admitted_seq):
        if event.type == "permission.v2.asked":
            break
    for request in fairlead.permissions(session):
        print("permitting", request.action, *request.resources)
        fairlead.approve(request)
    print(fairlead.answer_of(receipt).text)
