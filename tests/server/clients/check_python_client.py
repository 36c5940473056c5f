"""Talks to `troupe serve` with the client of ADK Python.

`check_python_client.py TROUPE ENVIRONMENT`: installs the pinned ADK from PyPI into the virtual
environment ENVIRONMENT unless it is there, and runs itself in it. Ends with 77 if PyPI cannot be
reached.
"""

import asyncio
import contextlib
import os
import pathlib
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent.parent
for each in ("cli/adk", "pages"):
    sys.path.insert(0, str(TESTS / each))

APP = {"app_name": "desk", "user_id": "ann"}


def expect_equal(found, wanted, about):
    if found != wanted:
        sys.exit(f"{about}: {found!r} in place of {wanted!r}")


def text_of(event):
    return "".join(part.text or "" for part in event.content.parts)


async def run(client, session, **message):
    """Returns the complete events of a run."""
    from google.adk.cli.adk_web_server import RunAgentRequest
    from google.genai import types

    content = types.Content(role="user", parts=[types.Part(**message)])
    request = RunAgentRequest(**APP, session_id=session.id, new_message=content, streaming=True)
    return [each async for each in client.run_agent(request) if not each.partial]


async def expect_status(status, call):
    import httpx

    try:
        await call
    except httpx.HTTPStatusError as refused:
        return expect_equal(refused.response.status_code, status, "status")
    sys.exit(f"an answer in place of status {status}")


async def use(client, server):
    from google.genai import types

    expect_equal((await client.get_version_data())["language"], "cpp", "language")
    session = await client.create_session(**APP, state={"topic": "owls", "user:name": "Ann"})
    expect_equal(session.state, {"topic": "owls", "user:name": "Ann"}, "state of a new session")
    named = {**APP, "session_id": session.id}
    session = await client.update_session(**named, state_delta={"topic": "cats"})
    expect_equal(session.state["topic"], "cats", "state after a change")

    answer, = await run(client, session, text="It is too high.")
    expect_equal(text_of(answer), "The invoice says **240 euros**.", "answer")
    asked = await run(client, session, text="Yes.")
    question = [call for event in asked for call in event.get_function_calls()][-1]
    expect_equal(question.name, "adk_request_confirmation", "last call")
    answered = await run(client, session, function_response=types.FunctionResponse(
        id=question.id, name=question.name, response={"confirmed": True}))
    expect_equal(text_of(answered[-1]), "The order was 160 euros.", "answer behind a permission")
    stored = await client.get_session(**named)
    expect_equal(stored.state["answer"], "The order was 160 euros.", "stored answer")
    expect_equal([each.id for each in stored.events[-len(answered):]],
                 [each.id for each in answered], "stored events of the last run")

    server.ask("POST", f"/apps/desk/users/ann/sessions/{session.id}/artifacts",
               {"filename": "note.txt", "artifact": {"text": "one"}})
    file = {**named, "artifact_name": "note.txt"}
    expect_equal((await client.get_artifact_version_metadata(**file, version=0)).version, 0,
                 "version of a file")
    expect_equal(len(await client.list_artifact_versions_metadata(**file)), 1, "versions")

    await client.delete_session(**named)
    await expect_status(404, client.get_session(**named))
    await expect_status(404, run(client, session, text="Anybody?"))


async def main(troupe):
    from google.adk.cli.conformance.adk_web_server_client import AdkWebServerClient

    from check_server_page import Server, write_agents

    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        write_agents(folder, model_port=1)
        with contextlib.closing(Server(troupe, folder, "--artifacts", "memory:")) as server:
            async with AdkWebServerClient(base_url=server.address) as client:
                await use(client, server)
    print("the client of ADK Python works with troupe serve")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        from check_with_adk import install

        interpreter = install(pathlib.Path(sys.argv[2]))
        os.execv(interpreter, [interpreter, "-W", "ignore", __file__, sys.argv[1]])
    asyncio.run(main(sys.argv[1]))
