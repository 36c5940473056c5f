// Uses `AdkApiClient` on a server: use_js_client.mjs CLIENT ADDRESS, with the file of the client.

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const [file, backendUrl] = process.argv.slice(2);
const { AdkApiClient } = await import(pathToFileURL(file));
const client = new AdkApiClient({ backendUrl });
const app = { appName: "desk", userId: "ann" };

async function run(session, newMessage, streaming = false) {
  const events = [];
  for await (const event of client.runAsync({ ...app, sessionId: session.id, newMessage,
    streaming }))
    events.push(event);
  return events;
}

function textOf(event) {
  return event.content.parts.map((part) => part.text ?? "").join("");
}

assert.ok((await client.listApps()).includes("desk"));
const session = await client.createSession({ ...app, state: { topic: "owls" } });
assert.deepEqual(session.state, { topic: "owls" });
const named = { ...app, sessionId: session.id };

const answers = await run(session, "It is too high.", true);
assert.equal(textOf(answers.at(-1)), "The invoice says **240 euros**.");
const asked = await run(session, "Yes.");
const question = asked.flatMap((event) => event.content?.parts ?? [])
  .map((part) => part.functionCall).filter(Boolean).at(-1);
assert.equal(question.name, "adk_request_confirmation");
const rest = await run(session, { role: "user", parts: [{ functionResponse: { id: question.id,
  name: question.name, response: { confirmed: true } } }] });
assert.equal(textOf(rest.at(-1)), "The order was 160 euros.");

const stored = await client.getSession(named);
assert.equal(stored.state.answer, "The order was 160 euros.");
assert.equal(stored.events.at(-1).id, rest.at(-1).id);
assert.deepEqual((await client.listSessions(app)).map((each) => each.id), [session.id]);
assert.ok((await client.listAllSessions({ userId: "ann" })).some((each) => each.id === session.id));

// The client has no call that saves a file.
const saved = await fetch(`${backendUrl}/apps/desk/users/ann/sessions/${session.id}/artifacts`,
  { method: "POST", body: JSON.stringify({ filename: "note.txt", artifact: { text: "one" } }) });
assert.equal(saved.status, 200);
const artifact = { ...named, artifactName: "note.txt" };
assert.deepEqual(await client.listArtifacts(named), ["note.txt"]);
assert.deepEqual(await client.loadArtifact({ ...artifact, version: 0 }), { text: "one" });
assert.deepEqual(await client.listArtifactVersions(artifact), [0]);
await client.deleteArtifact(artifact);
assert.deepEqual(await client.listArtifacts(named), []);

await client.deleteSession(named);
await assert.rejects(client.getSession(named), /404/);
await assert.rejects(run(session, "Anybody?"), /404/);
console.log("the client of ADK JS works with troupe serve");
