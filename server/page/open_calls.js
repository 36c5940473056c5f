// Calls that wait for an answer from outside: permissions and results.

const CONFIRMATION = "adk_request_confirmation";

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

// A form with one field, for text or JSON.
function fillResult(card, call, answer) {
  const field = element("textarea", { rows: 2, required: true, spellcheck: "false",
    "aria-label": `Result of ${call.tool}`, placeholder: "Text or JSON" });
  card.addEventListener("submit", (event) => {
    event.preventDefault();
    const data = fieldData(field.value);
    const isObject = data !== null && typeof data === "object" && !Array.isArray(data);
    answer(answerTo(call, isObject ? data : { result: data }));
  });
  add(card, [element("p", {}, `${call.agent} waits for the result of `, callLine(call)), field,
    element("div", { class: "row" },
      element("button", { type: "submit", class: "go" }, "Answer"))]);
}
