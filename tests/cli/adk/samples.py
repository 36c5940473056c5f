"""Sessions that ADK Python itself stores, for tests of the import and the export.

`samples.py FOLDER` writes, for each of ADK's two JSON layouts, a database as SQL text
(`v1.sql`, `sqlite_service.sql`) and ADK's own reading of its sessions (`v1.jsonl`,
`sqlite_service.jsonl`), and the tables of the old pickled layout (`v0.sql`). The files in this folder were made
in this way with google-adk 2.13.0. Times and ids are fixed, so that the files stay the same.
"""

import asyncio
import json
import pathlib
import sqlite3
import sys
import tempfile

import sqlalchemy
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions, EventCompaction
from google.adk.platform import time as adk_time
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.schemas.v0 import Base as BaseV0
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

START = 1_795_000_000.0


def text(words, role="user"):
    return types.Content(role=role, parts=[types.Part(text=words)])


def event(number, author, content=None, after=0.0, run="i1", actions=None, **more):
    return Event(id=f"e{number}", invocation_id=run, author=author, content=content,
                 actions=actions or EventActions(), timestamp=START + number + after, **more)


def conversation():
    """Events with every kind of content and of effect."""
    yield event(1, "user", text("Where is order 17? \U0001f989 \u2028 \x00 end"))
    yield event(2, "clerk", types.Content(role="model", parts=[
        types.Part(text="let me see", thought=True, thought_signature=b"\xfb\xff\x00"),
        types.Part(function_call=types.FunctionCall(
            id="c1", name="order_status", args={"order_number": 17, "none": None, "deepKey": {"a_b": 1}}))]),
        usage_metadata=types.GenerateContentResponseUsageMetadata(
            prompt_token_count=12, candidates_token_count=3, total_token_count=15,
            prompt_tokens_details=[types.ModalityTokenCount(modality="TEXT", token_count=12)]),
        model_version="gemini-2.5-flash", finish_reason=types.FinishReason.STOP,
        long_running_tool_ids={"c1"}, custom_metadata={"trace_id": "t-1", "is_it": None},
        branch="desk.clerk")
    yield event(3, "clerk", types.Content(role="user", parts=[
        types.Part(function_response=types.FunctionResponse(
            id="c1", name="order_status", response={"order_state": "on the way"})),
        types.Part(inline_data=types.Blob(mime_type="image/png", data=b"\x00\x01\x02\xfb\xff")),
        types.Part(file_data=types.FileData(file_uri="gs://b/f", mime_type="text/plain")),
        types.Part(executable_code=types.ExecutableCode(code="1+1", language="PYTHON")),
        types.Part(code_execution_result=types.CodeExecutionResult(outcome="OUTCOME_OK", output="2"))]),
        actions=EventActions(
            state_delta={"n": 1, "last_order": {"order_number": 17}, "user:orders": 1, "app:calls": 1,
                         "temp:gone": 1, "nothing": None, "user:nothing": None},
            artifact_delta={"invoice_17.pdf": 0}))
    yield event(4, "clerk", text("It is on the way.", "model"), run="i1",
                grounding_metadata=types.GroundingMetadata(
                    web_search_queries=["order_17"],
                    grounding_chunks=[types.GroundingChunk(web=types.GroundingChunkWeb(uri="https://example.org"))]),
                actions=EventActions(state_delta={"n": 2, "big": 2**63 - 1, "huge": 2**64 - 1, "small": -2**63,
                                                  "third": 1 / 3, "tiny": 5e-324, "uni_code": "\u00e9\U0001f989"},
                                     end_of_agent=True, agent_state={"step_count": 2}))
    yield event(5, "user", text("And order 18?"), run="i2")
    yield event(6, "clerk", text("Lost.", "model"), run="i2",
                actions=EventActions(state_delta={"n": 3, "wrong": True, "user:orders": 2},
                                     requested_tool_confirmations={
                                         "c_2": ToolConfirmation(hint="sure?", payload={"pay_load": 1})}))
    yield event(7, "user", run="i3", actions=EventActions(
        rewind_before_invocation_id="i2", state_delta={"n": 2, "wrong": None}))
    yield event(8, "user", run="i4", actions=EventActions(compaction=EventCompaction(
        start_timestamp=START + 1, end_timestamp=START + 4, compacted_content=text("one order", "model"))))
    # Three events of one time: their order is that of the ids, or that of the appends.
    yield event(9, "user", text("Thanks!"), run="i5")
    yield event(8, "clerk", text("You are welcome.", "model"), after=1.0, run="i5").model_copy(update={"id": "f9"})
    yield event(9, "clerk", text("Bye.", "model"), run="i5", error_code="X_1", error_message="an error",
                ).model_copy(update={"id": "d9"})


async def fill(service):
    adk_time.set_time_provider(lambda: START)
    session = await service.create_session(
        app_name="shop", user_id="ann", session_id="s1",
        state={"given": {"at": ["creation", None]}, "n": 0, "empty": None, "user:name": "Ann", "app:theme": "dark",
               "temp:x": 1})
    for said in conversation():
        await service.append_event(session, said)
    adk_time.set_time_provider(lambda: START + 100.5)
    await service.create_session(app_name="shop", user_id="ann", session_id="s2", state={"only": "given"})
    bob = await service.create_session(app_name="shop", user_id="b\u00f6b/\u2603", session_id="s1", state={})
    await service.append_event(bob, event(200, "user", text("hi"), after=0.123456,
                                          actions=EventActions(state_delta={"app:calls": 2, "user:name": "B\u00f6b"})))
    # An app and a user whose only session is deleted: their state stays.
    await service.create_session(app_name="lone", user_id="eve", session_id="s1",
                                 state={"app:kept": 1, "user:kept": [2], "user:null": None})
    await service.delete_session(app_name="lone", user_id="eve", session_id="s1")
    adk_time.reset_time_provider()


async def read(service, apps=("shop", "lone")):
    """The sessions as ADK reads them, in the form of its REST interface."""
    found = []
    for app in apps:
        for row in (await service.list_sessions(app_name=app)).sessions:
            whole = await service.get_session(app_name=app, user_id=row.user_id, session_id=row.id)
            found.append(whole.model_dump(mode="json", by_alias=True, exclude_none=True))
    return found


def dump(database, target):
    connection = sqlite3.connect(database)
    lines = ["-- Made by samples.py with google-adk 2.13.0.\n"]
    lines += [line.replace("\r", "") + "\n" for line in connection.iterdump()]
    target.write_text("".join(lines), encoding="utf-8")
    connection.close()


# States get the time of the database, which is not that of `adk_time`.
PIN_TIMES = "UPDATE {} SET update_time = '2026-11-18 14:26:40'"

async def main(folder):
    folder = pathlib.Path(folder)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for name, service, pinned in (
                ("v1", DatabaseSessionService(f"sqlite+aiosqlite:///{scratch}/v1.db"), True),
                ("sqlite_service", SqliteSessionService(f"{scratch}/sqlite_service.db"), False)):
            await fill(service)
            sessions = await read(service)
            await service.close()
            if pinned:
                connection = sqlite3.connect(scratch / f"{name}.db")
                for table in ("app_states", "user_states"):
                    connection.execute(PIN_TIMES.format(table))
                connection.commit()
                connection.close()
            dump(scratch / f"{name}.db", folder / f"{name}.sql")
            (folder / f"{name}.jsonl").write_text(
                "".join(json.dumps(each) + "\n" for each in sessions), encoding="utf-8")
        engine = sqlalchemy.create_engine(f"sqlite:///{scratch}/v0.db")
        BaseV0.metadata.create_all(engine)
        engine.dispose()
        dump(scratch / "v0.db", folder / "v0.sql")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
