// Requests to the server.

class Refusal extends Error {
  constructor(status, code, text) {
    super(text);
    this.status = status;
    this.code = code;
  }
}

const TOKEN = "troupe-token";

function sessionPath(key) {
  return `${sessionsPath(key)}/${encodeURIComponent(key.session)}`;
}

function sessionsPath(key) {
  return `${usersPath(key.app)}/${encodeURIComponent(key.user)}/sessions`;
}

function usersPath(app) {
  return `/apps/${encodeURIComponent(app)}/users`;
}

class Server {
  // `login` is called with true after a token was refused, and returns a promise of a token.
  constructor(login) {
    this.login = login;
    this.token = sessionStorage.getItem(TOKEN);
  }

  // Returns an answer with success. A request without a valid token waits for one.
  async fetch(method, path, { body, headers = {}, signal } = {}) {
    for (;;) {
      const token = this.token;
      const sent = { ...headers };
      if (token)
        sent.authorization = `Bearer ${token}`;
      if (body !== undefined)
        sent["content-type"] = "application/json";
      const answer = await fetch(path, { method, headers: sent, signal, cache: "no-store",
        body: body === undefined ? undefined : JSON.stringify(body) });
      if (answer.ok)
        return answer;
      if (answer.status !== 401)
        throw await refusalOf(answer);
      await this.renew(token);
    }
  }

  // Several requests may be refused at the same time; one question is enough.
  async renew(refused) {
    if (this.token !== refused)
      return;
    this.asking ??= this.login(Boolean(refused));
    const token = await this.asking;
    this.asking = null;
    this.token = token;
    sessionStorage.setItem(TOKEN, token);
  }

  async get(path, options) {
    return (await this.fetch("GET", path, options)).json();
  }

  async post(path, body, options = {}) {
    return (await this.fetch("POST", path, { ...options, body })).json();
  }

  // Returns a page of a list, and the cursor of the next one.
  async page(path, limit, cursor) {
    // The header has the cursor in the form of a query.
    const answer = await this.fetch("GET",
      `${path}?limit=${limit}${cursor ? `&cursor=${cursor}` : ""}`);
    return { list: await answer.json(), next: answer.headers.get("troupe-next-cursor") };
  }
}

async function refusalOf(answer) {
  let text = `${answer.status} ${answer.statusText}`;
  try {
    const { detail } = await answer.json();
    text = Array.isArray(detail) ? detail.map((each) => each.msg).join("; ") : detail ?? text;
  } catch {
    // The body is no JSON: the status has to do.
  }
  return new Refusal(answer.status, answer.headers.get("troupe-error"), text);
}

// Reads server-sent events: `{id, data}`.
async function* sentEvents(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value: text } = await reader.read();
      if (done)
        return;
      rest += text;
      const parts = rest.split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const made = sentEvent(part);
        if (made)
          yield made;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function sentEvent(text) {
  const made = { id: null, data: "" };
  for (const line of text.split("\n")) {
    if (line.startsWith("data:"))
      made.data += line.slice(5).trimStart();
    else if (line.startsWith("id:"))
      made.id = line.slice(3).trim();
  }
  return made.data === "" ? null : { id: made.id, data: JSON.parse(made.data) };
}
