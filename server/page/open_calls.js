// Calls that wait for an answer from outside: permissions and results.

const CONFIRMATION = "adk_request_confirmation";
const INPUT = "adk_request_input";

function answerTo(call, response) {
  return { role: "user", parts: [{ functionResponse: {
    id: call.id, name: call.question ? CONFIRMATION : call.tool, response } }] };
}

// Returns the value of a field: JSON if it is some, or else text.
function fieldData(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function callLine(call) {
  return element("code", { class: "call" }, element("b", {}, call.tool), "(",
    shortened(argumentsOf(call.args), 400), ")");
}

function argumentsOf(args) {
  return Object.entries(args ?? {}).map(([name, data]) => `${name}: ${textOf(data)}`).join(", ");
}

// `answer` sends a message.
function openCallCard(call, answer) {
  const card = element("form", { class: "ask", "data-call": call.id });
  if (call.question)
    fillQuestion(card, call, answer);
  else
    fillResult(card, call, answer);
  return card;
}

function fillQuestion(card, call, answer) {
  const hasPayload = call.question.payload !== null && call.question.payload !== undefined;
  const field = hasPayload && element("textarea", { rows: 3, "aria-label": "Data of the answer",
    spellcheck: "false" }, JSON.stringify(call.question.payload, null, 2));
  const decide = (confirmed) => {
    const response = { confirmed };
    if (hasPayload)
      response.payload = fieldData(field.value);
    answer(answerTo(call, response));
  };
  card.addEventListener("submit", (event) => {
    event.preventDefault();
    decide(true);
  });
  add(card, [element("p", {}, call.question.hint || `May ${call.tool} be called?`),
    element("p", {}, callLine(call)), field || null,
    element("div", { class: "row" },
      element("button", { type: "submit", class: "go" }, "Allow"),
      button("Deny", () => decide(false)))]);
}

// A form with one field, for text or JSON. The server reads an answer as JSON where the schema of
// the question wants it.
function fillResult(card, call, answer) {
  const isInput = call.tool === INPUT && typeof call.args?.message === "string";
  const hasSchema = isInput && (call.args.response_schema ?? null) !== null;
  const field = element("textarea", { rows: 2, required: true, spellcheck: "false",
    "aria-label": isInput ? call.args.message : `Result of ${call.tool}`,
    placeholder: "Text or JSON" });
  card.addEventListener("submit", (event) => {
    event.preventDefault();
    const data = hasSchema ? field.value : fieldData(field.value);
    const isObject = data !== null && typeof data === "object" && !Array.isArray(data);
    answer(answerTo(call, isObject ? data : { result: data }));
  });
  const payload = isInput ? call.args.payload ?? null : null;
  add(card, [isInput ? element("p", {}, call.args.message)
    : element("p", {}, `${call.agent} waits for the result of `, callLine(call)),
    payload === null ? null : element("pre", {}, JSON.stringify(payload, null, 2)), field,
    element("div", { class: "row" },
      element("button", { type: "submit", class: "go" }, "Answer"))]);
}
